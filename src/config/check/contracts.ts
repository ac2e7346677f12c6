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

/** The content of a contract's file, and the reporter of its faults. */
export interface ContractFile {
  readonly value: JsonSchema
  readonly report: Report
}

/** The JSON Schema of each contract by its route's name. Faults are reported in its file. */
export function* contractSteps(
  routes: RoutesConfig,
  fileOf: (name: string) => ContractFile | undefined
): Steps<Record<string, JsonSchema>> {
  const schemas: Record<string, JsonSchema> = {}
  for (const [name, { file }] of contractsIn(routes)) {
    const source = fileOf(file)
    if (source === undefined) continue
    const problem = schemaProblem(source.value)
    if (problem === undefined) schemas[name] = source.value
    else source.report(problem.path, problem.message)
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
