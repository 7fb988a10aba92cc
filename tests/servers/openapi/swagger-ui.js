// Opens openapi.yaml as Swagger UI does, with its parser. Prints the errors that Swagger UI would show, and fails if there are any.
import { parseYaml } from "@redocly/openapi-core";
import { readFileSync } from "node:fs";
import { exit } from "node:process";
import SwaggerClient from "swagger-client";

const text = readFileSync(new URL("../../../openapi.yaml", import.meta.url), "utf8");
const { errors } = await SwaggerClient.resolve({ spec: parseYaml(text) });
if (errors.length) {
  console.error(errors);
  exit(1);
}
