/** The config of all replicas: who runs what. */
import type { ReplicasStatus } from '../../admin/replicas.ts'
import { isRecord } from '../../json/values.ts'
import type { Operated } from '../operated.ts'
import { filesOf } from './config-view.ts'

type Options = Pick<Operated, 'ops' | 'reloader'>

const statusMs = 2000

/** @returns what asks all replicas */
export function serveStatus({ ops, reloader }: Options): () => Promise<ReplicasStatus> {
  const { bus, redis } = ops
  bus.serve('status', async () => {
    const [info] = await bus.replicas()
    const { state, since, faults } = filesOf(reloader)
    return {
      ...info,
      files: state,
      ...(since !== undefined && { since }),
      ...(faults?.[0] !== undefined && { fault: faults[0] }),
      restartNeeded: [...reloader.restartNeeded()]
    }
  })
  return async () => {
    const { replies, silent, problem } = await bus.ask('status', {}, statusMs)
    const infos = await bus.replicas()
    const unanswered = [...silent, ...replies.flatMap(r => ('error' in r ? [r.replica] : []))]
    const ofNone = 'No Redis is configured: this replica knows of no other.'
    const info = redis === undefined ? ofNone : problem
    return {
      replicas: replies.flatMap(reply =>
        'value' in reply && isRecord(reply.value)
          ? [reply.value as ReplicasStatus['replicas'][number]]
          : []
      ),
      silent: unanswered.map(id => {
        const { host, version, seenAt } = infos.find(each => each.id === id) ?? {}
        return { id, host: host ?? '', version: version ?? '', seenAt: seenAt ?? '' }
      }),
      ...(info !== undefined && { info })
    }
  }
}
