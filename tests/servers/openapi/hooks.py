"""What the exact document cannot tell schemathesis about this API. A run tests one action, COMEDOR_ACTION, with bodies of
one media type, COMEDOR_BODY, if it is a write. Without an action it tests openapi.yaml as it is."""

import copy
import json
import os

import schemathesis
from schemathesis.core.failures import AcceptedNegativeData
from schemathesis.openapi.checks import AllowHeaderMismatch, RejectedPositiveData, UnsupportedMethodResponse
from schemathesis.specs.openapi import checks

ACTION = os.environ["COMEDOR_ACTION"]
BODY = os.environ["COMEDOR_BODY"]

# Errors of valid requests that depend on the data of the aulario.
OF_STATE = {"NOT_FOUND", "INVALID_MENU_TYPE", "DUPLICATE"}
FULL = "A menu must have at most 64 plates."


@schemathesis.hook
def before_load_schema(context, document):
    """Reduces the exact document to one media type, and applies `x-codes`. A constant has more invalid values than an
    enumeration of one string."""
    if not ACTION:
        return
    for operation in document["paths"]["/api/comedor.php/" + ACTION].values():
        action = next(parameter for parameter in operation["parameters"] if parameter.get("name") == "action")
        action.update({"schema": {"const": ACTION}, "example": ACTION})
        if "requestBody" in operation:
            content = operation["requestBody"]["content"]
            operation["requestBody"]["content"] = {BODY: content[BODY]}
        if "x-codes" in operation:
            response = copy.deepcopy(document["components"]["responses"]["BadRequest"])
            codes = {"properties": {"code": {"enum": operation["x-codes"]}}}
            response["content"]["application/json"]["schema"]["allOf"].append(codes)
            operation["responses"]["400"] = response


def error_body(response):
    """The body of an error; empty if the program did not write it."""
    try:
        return json.loads(response.content) if response.status_code >= 400 else {}
    except ValueError:
        return {}


def is_of_state(case, response):
    """Whether the error depends on the data of the aulario. An answer to HEAD has no code."""
    if case.method == "HEAD":
        return response.status_code == 404 or bool(case.query.get("menu"))
    body = error_body(response)
    return body.get("code") in OF_STATE or body.get("error") == FULL


# Without a session the contract requires 400 INVALID_SESSION; schemathesis expects 401 or 403.
checks._enforces_auth = lambda response, authenticated: (
    response.status_code == 400 and error_body(response).get("code", "INVALID_SESSION") == "INVALID_SESSION"
)


@schemathesis.hook
def after_call(context, case, response):
    # For an unsupported method the contract requires 400 INVALID_ACTION; schemathesis expects 405, and then checks `Allow`.
    if checks.is_unexpected_http_status_case(case) and error_body(response).get("code") == "INVALID_ACTION":
        response.status_code = 405


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Drops false positives: valid data for a menu type that the aulario does not have and, without an action, whatever
    depends on the exact rules."""
    if isinstance(failure, RejectedPositiveData):
        return bool(ACTION) and not is_of_state(case, response)
    return bool(ACTION) or not isinstance(failure, AcceptedNegativeData | AllowHeaderMismatch | UnsupportedMethodResponse)
