import { type Static, Type } from 'typebox'
import type { Change } from '../config/diff.ts'
import type { FilesState } from '../services/gateway-state.ts'
import { count, flag, list, number, object, optional, text, time, union } from './schemas.ts'

const integer = Type.Integer()
const words = (description: string) => list(text(), description)
const hash = text('The same for the same config at all replicas.')
const filesState = text('running or refused.')
const address = object({
  upstream: text(),
  address: text(),
  state: Type.Enum(['up', 'open', 'unhealthy']),
  inFlight: integer,
  since: number('Milliseconds since the epoch.')
})
const restartNeeded = words('Keys of gateway.yaml that wait for a restart.')
const taken = object({ at: time, by: text(), changes: words('Of the last reload.') })
const replica = object({
  id: text(),
  host: text(),
  version: text(),
  pid: integer,
  startedAt: time,
  ready: flag(),
  generation: integer,
  configHash: hash,
  files: filesState,
  fault: optional(text('The first, of refused files.')),
  restartNeeded,
  requestsPerSecond: number('Over the last ten seconds.'),
  errorShare: number('Of these requests, those that failed (5xx): 0 to 1.'),
  p99Ms: union([Type.Number(), Type.Null()], { description: '99 of 100 were faster.' }),
  seenAt: time,
  isSilent: flag({ description: 'It told nothing for more than 3 s.' })
})
const replicas = list(replica, 'The one that was asked first.')

export const replicasAnswer = object({
  replicas,
  info: optional(text('Why others are not known.'))
})

export const statusAnswer = object({
  version: text(),
  pid: integer,
  startedAt: time,
  ready: flag(),
  parts: Type.Record(text(), text(), { description: 'The state of each part worth a word.' }),
  upstreams: list(address),
  folder: text(),
  hash,
  generation: integer,
  requests: number('That are being answered by it.'),
  draining: list(object({ generation: integer, requests: count }), 'Older ones that answer still.'),
  files: Type.Unsafe<FilesState>(
    object({ state: filesState, since: optional(time), faults: optional(list(text())) })
  ),
  restartNeeded,
  taken
})

export const planAnswer = object({
  changes: list(
    Type.Unsafe<Change>(object({ file: text(), path: text(), text: text(), restart: flag() })),
    'Each may need a restart.'
  ),
  risks: words('Of these changes.'),
  faults: words('Why the files cannot run.')
})

export const reloadAnswer = object({
  outcome: Type.Enum(['reloaded', 'unchanged', 'refused']),
  generation: integer,
  changes: optional(words('What changed.')),
  sessions: optional(words('What became of sessions of changed users.')),
  restartNeeded: optional(restartNeeded),
  faults: optional(words('Why the files were refused.')),
  taken: optional(taken)
})

export type ReplicasStatus = Static<typeof replicasAnswer>
export type Status = Static<typeof statusAnswer>
export type PlanAnswer = Static<typeof planAnswer>
export type ReloadAnswer = Static<typeof reloadAnswer>
