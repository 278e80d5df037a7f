"""A local HTTP/2 server without TLS that keeps every stream open for a while."""

from __future__ import annotations

import asyncio
import json
import threading

import h2.config
import h2.connection
import h2.events
import h2.settings

from tests.runners.load.server import MODELS, sse, token, usage


class H2Server:
    """Answers each stream `hold_s` after its request; allows `streams` of them on a connection."""

    def __init__(self, streams: int, hold_s: float) -> None:
        self.streams, self.hold_s = streams, hold_s
        self.connections = self.open = self.most_open = 0
        self.seen: list[dict[str, str]] = []
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._listen()), daemon=True)
        self._thread.start()
        assert self._ready.wait(10)

    async def _listen(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(0.02)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        config = h2.config.H2Configuration(client_side=False, header_encoding="utf-8")
        h2c = h2.connection.H2Connection(config)
        h2c.local_settings = h2.settings.Settings(
            client=False, initial_values={3: self.streams}
        )  # fmt: skip
        h2c.initiate_connection()
        writer.write(h2c.data_to_send())
        asked, answers = {}, set()
        try:
            while data := await reader.read(65536):
                for event in h2c.receive_data(data):
                    if isinstance(event, h2.events.RequestReceived):
                        asked[event.stream_id] = dict(event.headers)
                        self.seen.append(dict(event.headers))
                    elif isinstance(event, h2.events.DataReceived):
                        length = event.flow_controlled_length
                        h2c.acknowledge_received_data(length, event.stream_id)
                    elif isinstance(event, h2.events.StreamEnded):
                        headers = asked.pop(event.stream_id)
                        work = self._answer(h2c, writer, event.stream_id, headers)
                        answers.add(asyncio.create_task(work))
                writer.write(h2c.data_to_send())
        except (ConnectionError, asyncio.CancelledError):
            return
        finally:
            writer.close()

    async def _answer(self, h2c, writer, stream_id, headers) -> None:
        body = json.dumps(MODELS).encode()
        if headers[":method"] == "POST":
            self.open += 1
            self.most_open = max(self.most_open, self.open)
            await asyncio.sleep(self.hold_s)
            self.open -= 1
            body = sse(token("a"), token("b", "stop"), usage(3, 2)).encode()
        h2c.send_headers(stream_id, [(":status", "200")])
        h2c.send_data(stream_id, body, end_stream=True)
        writer.write(h2c.data_to_send())
