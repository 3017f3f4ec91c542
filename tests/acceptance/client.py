"""The API from outside, with a key or without."""

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

ANSWER_S = 30.0


class Client:
    """One exchange a connection, so that it can be asked while the server starts or stops."""

    def __init__(self, url: str, *, key: str = "") -> None:
        self._place = urlsplit(url).netloc
        self._headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}

    def answers(self, path: str) -> bool:
        """Whether GET answers 200 there."""
        try:
            return self._exchange("GET", path)[0] == http.client.OK
        except OSError:
            return False

    def get(self, path: str) -> Any:
        """The JSON of a GET that must succeed."""
        return self._succeed("GET", path)

    def post(self, path: str, body: Any) -> Any:
        """The JSON of a POST that must succeed."""
        return self._succeed("POST", path, body)

    def _succeed(self, method: str, path: str, body: Any = None) -> Any:
        status, text = self._exchange(method, path, body)
        assert status < http.client.BAD_REQUEST, f"{method} {path} answered {status}: {text[:500]}"
        return json.loads(text)

    def _exchange(self, method: str, path: str, body: Any = None) -> tuple[int, str]:
        connection = http.client.HTTPConnection(self._place, timeout=ANSWER_S)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), self._headers)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()
