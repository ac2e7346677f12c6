/** Rules for contracts: a valid JSON Schema, and a response that is read. */
import { type JsonSchema, schemaProblem } from '../../contract/schema.ts'
import type { ContractConfig } from '../schema/proxied.ts'
import type { RoutesConfig } from '../schema/routes.ts'
import type { Steps } from '../schema/steps.ts'
import type { CheckedConfig, Report } from './report.ts'

/** Each by the name of its route. */
function contractsIn({ routes, endpoints: { profile } }: RoutesConfig) {
  return Object.entries<{ readonly contract?: ContractConfig }>({ ...routes, profile }).flatMap(
    ([name, { contract }]) => (contract === undefined ? [] : [[name, contract] as const])
  )
}

/**
 * The JSON Schema of each contract by its route's name.
 * @param files by their names; what config names and is not there was reported
 * @param reportIn reports a fault in a file
 */
export function* contractSteps<File extends { readonly value: JsonSchema }>(
  routes: RoutesConfig,
  files: Readonly<Record<string, File>>,
  reportIn: (file: File) => Report
): Steps<Record<string, JsonSchema>> {
  const schemas: Record<string, JsonSchema> = {}
  for (const [name, { file: fileName }] of contractsIn(routes)) {
    const file = files[fileName]
    if (file === undefined) continue
    const problem = schemaProblem(file.value)
    if (problem === undefined) schemas[name] = file.value
    else reportIn(file)(problem.path, problem.message)
    yield
  }
  return schemas
}

/** `strict` has to refuse a response before it is sent, and only shaped responses are read first. */
export function checkContracts(
  { routes: { routes } }: Pick<CheckedConfig, 'routes'>,
  report: Report
): void {
  for (const [name, { contract, shape, parts = {} }] of Object.entries(routes)) {
    if (contract?.mode === 'strict' && shape === undefined && Object.keys(parts).length === 0) {
      report(
        ['routes', name, 'contract', 'mode'],
        '`strict` needs a shape: only a shaped response is read before it is sent'
      )
    }
  }
}
