// Lints openapi.yaml with Redocly's recommended rules. On problems, prints them and fails; otherwise
// prints the document as JSON with every $ref resolved.
import { bundle, createConfig, formatProblems, getTotals, lint } from "@redocly/openapi-core";
import { exit } from "node:process";
import { fileURLToPath } from "node:url";

const ref = fileURLToPath(new URL("../../../openapi.yaml", import.meta.url));
const config = await createConfig({
  extends: ["recommended-strict"],
  rules: {
    // Check all examples; the recommended rules do not.
    "no-invalid-parameter-examples": "error",
    "no-invalid-schema-examples": "error",
    // The project has no licence that it could name.
    "info-license": "off",
    // No $ref uses the schema Actions: clients take their types from it, and tests read it.
    "no-unused-components": "off",
  },
});
const problems = await lint({ ref, config });
if (problems.length > 0) {
  formatProblems(problems, { totals: getTotals(problems), version: "" });
  exit(1);
}
const { bundle: document } = await bundle({ ref, config, dereference: true });
console.log(JSON.stringify(document.parsed));
