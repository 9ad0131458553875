/** What a user of the package may rely on when installing it. */

interface Conditions {
  readonly [condition: string]: string | Conditions;
}

export interface PackageJson {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly scripts?: Readonly<Record<string, string>>;
  readonly exports?: Readonly<Record<string, Conditions>>;
}

const ALLOWED = ["koffi"];
const INSTALL_SCRIPTS = ["preinstall", "install", "postinstall", "prepublish", "prepare"];

/** Wherever a condition leads to files. */
function typesComeFirst(conditions: Conditions): boolean {
  const inner = Object.values(conditions);
  if (inner.some((each) => typeof each === "string")) return Object.keys(conditions)[0] === "types";
  return inner.every((each) => typesComeFirst(each as Conditions));
}

export function packageComplaints(manifest: PackageJson): string[] {
  const { dependencies, optionalDependencies, peerDependencies, scripts, exports } = manifest;
  const needed = Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies });
  return [
    ...needed.filter((name) => !ALLOWED.includes(name)).map((name) => `depends on ${name}`),
    ...INSTALL_SCRIPTS.filter((name) => scripts?.[name] !== undefined).map(
      (name) => `runs a script at install: ${name}`,
    ),
    // The first condition that matches counts, so types after default would never be found.
    ...Object.entries(exports ?? {})
      .filter(([, conditions]) => !typesComeFirst(conditions))
      .map(([name]) => `exports ${JSON.stringify(name)}: types does not come first`),
  ];
}
