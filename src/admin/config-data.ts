/** `/ops/api/config`: what runs, expectations and contracts. It holds no secrets. */
import type { FastifyInstance } from 'fastify'
import { type Static, Type } from 'typebox'
import { addOpsScope } from './api.ts'

const time = Type.String({ format: 'date-time' })
const words = (description: string) => Type.Array(Type.String(), { description })
const hash = Type.String({ description: 'The same for the same config at all replicas.' })
const diffs = Type.Array(
  Type.Object({
    file: Type.String({ examples: ['routes.yaml'] }),
    diff: Type.String({ description: 'Lines of YAML with "+ ", "- " or two blanks in front.' })
  }),
  { description: 'Only the files that differ. Values from outside stand as their references.' }
)
const fault = Type.Object({
  file: Type.String(),
  line: Type.Integer({ description: '0 for the whole file.' }),
  path: Type.String(),
  message: Type.String()
})

const configNow = Type.Object({
  folder: Type.String(),
  generation: Type.Integer(),
  hash,
  installHash: Type.String({
    description: 'Of the running gateway.yaml, without the addresses on which it listens.'
  }),
  takenAt: time,
  by: Type.String(),
  changes: words('Of the last reload.'),
  files: Type.Object({
    state: Type.String({ description: 'running or refused.' }),
    since: Type.Optional(time),
    faults: Type.Optional(words('Why they were refused.')),
    places: Type.Array(fault, { description: 'The same faults by file and line, as far as known.' })
  }),
  restartNeeded: words('Keys of gateway.yaml that wait for a restart.')
})

const configFiles = Type.Object({
  state: Type.String({ description: 'same, different, or faulty.' }),
  reload: words('What a reload would change.'),
  restart: words('What only a restart would change.'),
  risks: words('Of these changes.'),
  files: diffs,
  faults: words('Why the files cannot run.')
})

const expectations = Type.Object({
  expectations: Type.Array(
    Type.Object({
      name: Type.String(),
      text: Type.String(),
      isMet: Type.Boolean({ description: 'By the running config, or else by the refused files.' }),
      message: Type.Optional(Type.String())
    })
  )
})

const contracts = Type.Object({
  contracts: Type.Array(
    Type.Object({
      route: Type.String(),
      mode: Type.String(),
      checked: Type.Integer({ description: 'Responses since the start of the processes.' }),
      broken: Type.Integer({ description: 'Responses that were refused.' }),
      drift: words('How responses differ at present.')
    })
  )
})

export type ConfigNow = Static<typeof configNow>
export type ConfigFiles = Static<typeof configFiles>
export type Expectations = Static<typeof expectations>
export type Contracts = Static<typeof contracts>

interface Options {
  readonly current: () => ConfigNow
  /** Reads the files. */
  readonly files: () => Promise<ConfigFiles>
  readonly expectations: () => Expectations
  readonly contracts: () => Contracts
}

export function addConfigData(ops: FastifyInstance, options: Options): void {
  addOpsScope(ops, scope => {
    const add = (path: string, summary: string, responds: object, read: () => unknown) =>
      scope.get(path, { schema: { summary }, config: { responds } }, async () => await read())
    add('/config', 'The running config: since when, and what changed.', configNow, () =>
      options.current()
    )
    add('/config/files', 'Where the files differ from what runs.', configFiles, () =>
      options.files()
    )
    add(
      '/config/expectations',
      'The expectations of routes.yaml, and whether they are met.',
      expectations,
      () => options.expectations()
    )
    add(
      '/config/contracts',
      'The contracts of routes, and how responses differ from them.',
      contracts,
      () => options.contracts()
    )
  })
}
