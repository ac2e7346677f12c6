/** Rules for contracts: one source each, a valid JSON Schema, and a response that is read. */
import type { Report } from './report.ts'
import type { Steps } from '../schema/steps.ts'
import { type JsonSchema, schemaProblem } from '../../contract/schema.ts'
import type { RoutesConfig } from '../schema/routes.ts'
import { isObject, type Path } from '../schema/visit.ts'
import type { ContractConfig } from '../schema/contracts.ts'

interface Holders {
  readonly routes?: unknown
  readonly endpoints?: unknown
}

/** Every contract with its route's name and its place. The config may not match its schema yet. */
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
  /** A file's value and the reporter of its faults; undefined if unreadable (already reported). */
  readonly read: (
    file: string
  ) => Steps<
    { readonly value: unknown; readonly report: (path: Path, message: string) => void } | undefined
  >
  readonly report: (path: Path, message: string) => void
}

/** The JSON Schema of each contract by its route's name. Faults are reported at their own place. */
export function* contractSteps(
  config: Holders,
  { read, report }: SchemaReaders
): Steps<Record<string, JsonSchema>> {
  const schemas: Record<string, JsonSchema> = {}
  for (const [name, path, { schema, file }] of contractsIn(config)) {
    if ((schema === undefined) === (file === undefined)) {
      report(path, 'needs one of schema and file')
      continue
    }
    const source =
      typeof file === 'string'
        ? yield* read(file)
        : {
            value: schema,
            report: (inner: Path, message: string) => report([...path, 'schema', ...inner], message)
          }
    if (source === undefined || !isObject(source.value)) continue
    const problem = schemaProblem(source.value)
    if (problem === undefined) schemas[name] = source.value
    else source.report(problem.path, problem.message)
    yield
  }
  return schemas
}

/** `strict` has to refuse a response before it is sent, and only shaped responses are read first. */
export function checkContracts(
  { routes: { routes } }: { readonly routes: RoutesConfig },
  report: Report
): void {
  for (const [name, { contract, shape, parts }] of Object.entries(routes)) {
    if (contract?.mode === 'strict' && shape === undefined && Object.keys(parts).length === 0) {
      report(
        'routes',
        ['routes', name, 'contract', 'mode'],
        '`strict` needs a shape: only a shaped response is read before it is sent'
      )
    }
  }
}
