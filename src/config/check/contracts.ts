/** Rules for contracts: one source each, a valid JSON Schema, and a response that is read. */
import { type JsonSchema, schemaProblem } from '../../contract/schema.ts'
import type { Path } from '../schema/node.ts'
import type { RoutesConfig } from '../schema/routes.ts'
import type { Steps } from '../schema/steps.ts'
import type { CheckedConfig, Report } from './report.ts'

function contractsIn({ routes, endpoints: { profile } }: RoutesConfig) {
  const ofRoutes = Object.entries(routes).map(([name, { contract }]) => ({
    name,
    path: ['routes', name, 'contract'] as Path,
    contract
  }))
  const ofProfile = { path: ['endpoints', 'profile', 'contract'], contract: profile.contract }
  return [...ofRoutes, { name: 'profile', ...ofProfile }]
}

/** The content of a contract's file, and the reporter of its faults. */
export interface ContractFile {
  readonly value: JsonSchema
  readonly report: Report
}

/** The JSON Schema of each contract by its route's name. Faults are reported at their own place. */
export function* contractSteps(
  routes: RoutesConfig,
  fileOf: (name: string) => ContractFile | undefined,
  report: Report
): Steps<Record<string, JsonSchema>> {
  const schemas: Record<string, JsonSchema> = {}
  for (const { name, path, contract } of contractsIn(routes)) {
    if (contract === undefined) continue
    const { schema, file } = contract
    const reportInline: Report = (inner, message) => report([...path, 'schema', ...inner], message)
    const source = file === undefined ? { value: schema, report: reportInline } : fileOf(file)
    if (source?.value === undefined || (schema !== undefined && file !== undefined)) {
      report(path, 'needs one of schema and file')
      continue
    }
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
  for (const [name, { contract, shape, parts }] of Object.entries(routes)) {
    if (contract?.mode === 'strict' && shape === undefined && Object.keys(parts).length === 0) {
      report(
        ['routes', name, 'contract', 'mode'],
        '`strict` needs a shape: only a shaped response is read before it is sent'
      )
    }
  }
}
