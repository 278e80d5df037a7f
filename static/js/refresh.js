/* Parts of a page that follow what goes on: [id][data-refresh="seconds"] is read anew from
   the page's own address. It stops where the new page says nothing goes on there, and loads
   the whole page once the part has given way to something else. */
(function () {
  "use strict";
  async function again(element) {
    /* Not under somebody's fingers, and not for nobody. */
    if (document.hidden || element.contains(document.activeElement)) return true;
    let page;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (!answer.ok || answer.redirected) return true;
      page = new DOMParser().parseFromString(await answer.text(), "text/html");
    } catch {
      return true; /* the server is away for a moment */
    }
    const next = page.getElementById(element.id);
    if (!next) { location.reload(); return false; }
    if (next.innerHTML !== element.innerHTML) element.innerHTML = next.innerHTML;
    return next.hasAttribute("data-refresh");
  }
  function follow(element) {
    setTimeout(async () => {
      if (await again(element)) follow(element);
      else element.removeAttribute("data-refresh");
    }, 1000 * Number(element.dataset.refresh));
  }
  for (const element of document.querySelectorAll("[data-refresh][id]")) follow(element);
})();
