"""check.py TOOLS_SBOM: what CycloneDX 1.5 requires of the fields that tools/sbom writes, and that it lists what is shipped."""
import json
import os
import re
import subprocess
import sys

output = subprocess.run([sys.executable, sys.argv[1]], stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}).stdout
document = json.loads(output)
problems = []


def expect(holds, problem):
    if not holds:
        problems.append(problem)


DIGITS = {"MD5": 32, "SHA-1": 40, "SHA-256": 64, "SHA-384": 96, "SHA-512": 128}
TYPES = {"application", "framework", "library", "container", "platform", "operating-system", "device", "device-driver", "firmware", "file",
         "machine-learning-model", "data"}


def check_component(component):
    name = component.get("name", "a component without a name")
    expect(component.get("type") in TYPES, f"{name}: type is required, one of {sorted(TYPES)}")
    expect(component.get("name"), "a component needs a name")
    expect(component.get("scope", "required") in {"required", "optional", "excluded"}, f"{name}: scope")
    expect(re.fullmatch(r"pkg:[a-z]+/\S+@\S+", component.get("purl", "pkg:a/b@c")), f"{name}: purl")
    for one in component.get("hashes", []):
        expect(len(one["content"]) == DIGITS.get(one["alg"]) and re.fullmatch("[0-9a-f]+", one["content"]), f"{name}: hash {one}")
    for one in component.get("licenses", []):
        expect(one.keys() == {"license"} and one["license"].get("id", one["license"].get("name")), f"{name}: licence {one}")
    for one in component.get("properties", []):
        expect(one.keys() <= {"name", "value"} and all(isinstance(text, str) for text in one.values()), f"{name}: property {one}")


expect(document.get("bomFormat") == "CycloneDX", "bomFormat")
expect(document.get("specVersion") == "1.5", "specVersion")
expect(document.get("version") == 1, "version")
expect(re.fullmatch(r"urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", document.get("serialNumber", "")), "serialNumber")
expect(document["metadata"]["timestamp"] == "2023-11-14T22:13:20Z", "metadata.timestamp is that of SOURCE_DATE_EPOCH, in RFC 3339")
check_component(document["metadata"]["component"])
for component in document["components"]:
    check_component(component)

refs = [document["metadata"]["component"]["bom-ref"]] + [one["bom-ref"] for one in document["components"]]
expect(len(refs) == len(set(refs)), "every bom-ref is its own")
for dependency in document["dependencies"]:
    expect({dependency["ref"], *dependency["dependsOn"]} <= set(refs), "dependencies are components")

shipped = {one["name"] for one in document["components"] if one["scope"] == "required"}
expect({"preact", "uplot", "libssl-dev", "libfmt-dev"} <= shipped, f"preact, uplot and the libraries are shipped, not only {sorted(shipped)}")
expect(not {"esbuild", "typescript"} & shipped, "what only bundles the page is not shipped")

if problems:
    sys.exit("The SBOM is not what CycloneDX 1.5 requires:\n  " + "\n  ".join(problems))
print(f"{len(document['components'])} components")
