/** Live config, the `contract` of a route: what the console gets, as a JSON Schema, and who is told where an answer differs. */
import { Type, type Static } from 'typebox'
import type { Report } from './check.ts'
import type { JsonSchema } from './closed-schema.ts'
import { schemaProblems } from './json-schema.ts'
import { oneOf, pairs, text } from './primitives.ts'
import type { RoutesConfig } from './routes.ts'
import { isObject, type Path } from './visit.ts'

export const contractSchema = Type.Object(
  {
    schema: Type.Optional(
      pairs(Type.Unknown(), {
        description:
          'A JSON Schema (2020-12) of what stands under `data`, where the envelope is put around the answer, and else of the whole answer.',
        examples: [{ type: 'array', items: { type: 'object', required: ['id'] } }]
      })
    ),
    file: Type.Optional(
      text({
        description:
          'A file with that JSON Schema, as JSON or YAML, seen from the config folder. `console-gateway contract learn` and `contract from-type` write one.',
        examples: ['contracts/notices.schema.json']
      })
    ),
    mode: oneOf(['observe', 'strict', 'off'], {
      default: 'observe',
      description:
        '`observe`: some answers are checked, off the request’s path; what differs is counted, and logged when it begins and ends. `strict`: also, an answer that the schema refuses is 502 `contract.broken`.'
    }),
    sample: Type.Number({
      minimum: 0,
      maximum: 1,
      default: 0.1,
      expected: 'a share from 0 to 1, such as 0.1',
      description: 'The share of answers that is observed. A busy gateway observes fewer.'
    })
  },
  { additionalProperties: false, description: 'What the console gets from this route.' }
)

export type ContractConfig = Static<typeof contractSchema>

/** What stands for a schema in a file of its own: any mapping. */
export const schemaFile = pairs(Type.Unknown(), { description: 'A JSON Schema.' })

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
  for (const [name, { contract, shape, parts }] of Object.entries(routes))
    if (contract?.mode === 'strict' && shape === undefined && Object.keys(parts).length === 0)
      report(
        'routes',
        ['routes', name, 'contract', 'mode'],
        '`strict` needs a shape: only a shaped answer is read before it is sent'
      )
}
