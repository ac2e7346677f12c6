/** `/ops/api/config`: what runs, its revisions, expectations and contracts. It holds no secrets. */
import type { FastifyInstance } from 'fastify'
import { type Static, Type } from 'typebox'
import { malformed } from '../app/hooks/validation.ts'
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
const revision = {
  number: Type.Integer(),
  at: time,
  by: Type.String(),
  hash,
  of: Type.Optional(
    Type.Integer({ description: 'Of a rollback: the revision whose config it is.' })
  ),
  changes: words('From the revision before.')
}
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
  changes: words('Of the last revision.'),
  files: Type.Object({
    state: Type.String({ description: 'running, refused, or rolled back.' }),
    since: Type.Optional(time),
    faults: Type.Optional(words('Why they were refused.')),
    places: Type.Array(fault, { description: 'The same faults by file and line, as far as known.' })
  }),
  restartNeeded: words('Keys of gateway.yaml that wait for a restart.'),
  revisions: Type.Array(Type.Object(revision), { description: 'The newest first; it runs.' })
})

const configFiles = Type.Object({
  state: Type.String({ description: 'same, different, or faulty.' }),
  reload: words('What a reload would change.'),
  restart: words('What only a restart would change.'),
  risks: words('Of these changes.'),
  files: diffs,
  faults: words('Why the files cannot run.')
})

const configRevision = Type.Object({
  ...revision,
  changes: words('What a rollback to it would change.'),
  files: diffs,
  taken: Type.Object({
    changes: words('What it changed when it came.'),
    files: diffs
  })
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
export type ConfigRevision = Static<typeof configRevision>
export type Expectations = Static<typeof expectations>
export type Contracts = Static<typeof contracts>

interface Options {
  readonly current: () => ConfigNow
  /** Reads the files. */
  readonly files: () => Promise<ConfigFiles>
  /** @throws GatewayError `request.malformed` where there is none */
  readonly revision: (number: number) => ConfigRevision
  readonly expectations: () => Expectations
  readonly contracts: () => Contracts
}

const revisionNumber = Type.Object({ number: Type.String({ pattern: '^[0-9]{1,9}$' }) })

export function addConfigData(ops: FastifyInstance, options: Options): void {
  addOpsScope(ops, scope => {
    const add = (path: string, summary: string, responds: object, read: () => unknown) =>
      scope.get(path, { schema: { summary }, config: { responds } }, async () => await read())
    add(
      '/config',
      'The running config: since when, what changed, and its revisions.',
      configNow,
      () => options.current()
    )
    add('/config/files', 'Where the files differ from what runs.', configFiles, options.files)
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
    scope.get<{ Params: Static<typeof revisionNumber> }>(
      '/config/revisions/:number',
      {
        schema: { summary: 'How a revision differs from what runs.', params: revisionNumber },
        schemaErrorFormatter: malformed('A revision is named by its number.'),
        config: { responds: configRevision }
      },
      async ({ params }) => options.revision(Number(params.number))
    )
  })
}
