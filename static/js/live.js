/* A run in progress: server-sent events, and htmx polling where they do not get through. */
(function () {
  "use strict";
  const FAILURES_UNTIL_POLLING = 3;

  function follow(element) {
    let failures = 0;
    const events = new EventSource(element.dataset.events);
    events.addEventListener("progress", (event) => {
      failures = 0;
      element.innerHTML = event.data;
      element.dataset.live = "events";
    });
    events.addEventListener("ended", () => {
      events.close();
      location.reload();
    });
    events.addEventListener("error", () => {
      failures += 1;
      if (events.readyState !== EventSource.CLOSED && failures < FAILURES_UNTIL_POLLING) return;
      events.close();
      poll(element);
    });
    addEventListener("pagehide", () => events.close());
  }

  function poll(element) {
    element.dataset.live = "polling";
    element.setAttribute("hx-get", element.dataset.poll);
    element.setAttribute("hx-trigger", "load, every 2s");
    element.setAttribute("hx-swap", "innerHTML");
    window.htmx.process(element);
  }

  for (const element of document.querySelectorAll("[data-events]")) {
    if (window.EventSource) follow(element);
    else poll(element);
  }
})();
