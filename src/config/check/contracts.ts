/** Rules for contracts: one source each, a sound JSON Schema, and an answer to hold against it. */
import type { Report } from './report.ts'
import type { JsonSchema } from '../../json-schema/closed-schema.ts'
import { schemaProblems } from '../../json-schema/compile.ts'
import type { RoutesConfig } from '../schema/routes.ts'
import { isObject, type Path } from '../schema/visit.ts'
import type { ContractConfig } from '../schema/contracts.ts'

interface Holders {
  readonly routes?: unknown
  readonly endpoints?: unknown
}

/** Every contract, by the name of its route, and where it stands. The config may be unfit yet. */
function contractsIn({
  routes,
  endpoints
}: Holders): Array<readonly [name: string, path: Path, contract: ContractConfig]> {
  const of = (name: string, path: Path, holder: unknown) =>
    isObject(holder) && isObject(holder['contract'])
      ? [[name, path, holder['contract'] as ContractConfig] as const]
      : []
  const profile = isObject(endpoints) ? endpoints['profile'] : undefined
  return [
    ...Object.entries(isObject(routes) ? routes : {}).flatMap(([name, route]) =>
      of(name, ['routes', name, 'contract'], route)
    ),
    ...of('profile', ['endpoints', 'profile', 'contract'], profile)
  ]
}

interface SchemaReaders {
  /** A file's value, and how its faults are told; undefined where it cannot be read, which has been told then. */
  readonly read: (
    file: string
  ) =>
    | { readonly value: unknown; readonly report: (path: Path, message: string) => void }
    | undefined
  readonly report: (path: Path, message: string) => void
}

/** The JSON Schema of each contract, by the name of its route. What is wrong with one is told where it stands. */
export function loadContracts(
  config: Holders,
  { read, report }: SchemaReaders
): Record<string, JsonSchema> {
  const found: Record<string, JsonSchema> = {}
  for (const [name, path, { schema, file }] of contractsIn(config)) {
    if ((schema === undefined) === (file === undefined)) {
      report(path, 'needs one of schema and file')
      continue
    }
    const source =
      typeof file === 'string'
        ? read(file)
        : {
            value: schema,
            report: (inner: Path, message: string) => report([...path, 'schema', ...inner], message)
          }
    if (source === undefined || !isObject(source.value)) continue
    const problems = schemaProblems(source.value)
    for (const problem of problems) source.report(problem.path, problem.message)
    if (problems.length === 0) found[name] = source.value
  }
  return found
}

/** Only a shaped answer is read before it is sent. */
export function checkContracts(
  { routes: { routes } }: { readonly routes: RoutesConfig },
  report: Report
): void {
  for (const [name, { contract, shape, parts }] of Object.entries(routes)) {
    if (contract?.mode === 'strict' && shape === undefined && Object.keys(parts).length === 0) {
      report(
        'routes',
        ['routes', name, 'contract', 'mode'],
        '`strict` needs a shape: only a shaped answer is read before it is sent'
      )
    }
  }
}
