"""What openapi.yaml cannot tell schemathesis about this API. A run tests one action, COMEDOR_ACTION, with
bodies of one media type, COMEDOR_BODY, if it is a write. Without an action it tests the unchanged document."""

import json
import os

import schemathesis
from schemathesis.core.failures import AcceptedNegativeData
from schemathesis.openapi.checks import AllowHeaderMismatch, RejectedPositiveData
from schemathesis.specs.openapi import checks

ACTION = os.environ["COMEDOR_ACTION"]
BODY = os.environ["COMEDOR_BODY"]
READS = ("get_menu_types", "get_menu")

# Errors of valid requests that depend on the data of the aulario.
OF_STATE = {"NOT_FOUND", "INVALID_MENU_TYPE", "DUPLICATE"}
FULL = "A menu must have at most 64 plates."


@schemathesis.hook
def before_load_schema(context, document):
    """Reduces the document to the action, using its table Actions."""
    if not ACTION:
        return
    components = document["components"]
    action = components["schemas"]["Actions"]["properties"][ACTION]["properties"]
    path = document["paths"]["/api/comedor.php"]
    kept = ["aulario", *action["query"].get("properties", [])]
    path["parameters"] = [it for it in path["parameters"] if it["name"] in kept]
    components["responses"]["BadRequest"]["content"]["application/json"]["schema"]["allOf"].append(
        {"properties": {"code": action["refusal"]}}
    )
    components["parameters"]["ReadAction"].update(only(components["parameters"]["ReadAction"]))
    post = path["post"]
    post["parameters"] = [only(post["parameters"][0])]
    if ACTION in READS:
        del post["requestBody"]
    else:
        del path["get"], path["head"]
        content = post["requestBody"]["content"][BODY]
        content["schema"] = action["body" if BODY == "application/json" else "form"]
        content["examples"] = {ACTION: content["examples"][ACTION]}
        post["requestBody"] = {"required": True, "content": {BODY: content}}
    for method in path.keys() & {"get", "post"}:
        content = path[method]["responses"]["200"]["content"]["application/json"]
        content["schema"] = action["answer"]
        del content["examples"]


def only(parameter):
    """The parameter with the action as its only value."""
    return {**parameter, "schema": {"const": ACTION}, "examples": {ACTION: {"value": ACTION}}}


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
    """Drops false positives: valid data for a menu type that the aulario does not have and, without an action, combinations
    of parameters and bodies of different actions."""
    if isinstance(failure, RejectedPositiveData):
        return bool(ACTION) and not is_of_state(case, response)
    return bool(ACTION) or not isinstance(failure, AcceptedNegativeData | AllowHeaderMismatch)
