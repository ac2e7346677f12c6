/** What `/ops/api/now` tells: this process in full, other replicas by their heartbeat. */
import type { Now } from '../../admin/now-schema.ts'
import type { Operated } from '../operated.ts'
import { presentJson } from '../server/present-json.ts'

/** Less than the second between two events of a stream. */
const freshMs = 800

export function nowReader({
  publicServer,
  state,
  fleet
}: Pick<Operated, 'publicServer' | 'state' | 'fleet'>): () => Promise<Now> {
  return cached(async () => {
    const { replicas } = await fleet.list()
    const { generation, hash, files } = state().config
    return {
      at: new Date().toISOString(),
      replica: fleet.id,
      ...presentJson(publicServer.present()),
      replicas: [...replicas],
      config: { generation, hash, state: files.state }
    }
  })
}

/** Calls at one time share one run, and its result for less than a second. */
function cached<T>(run: () => Promise<T>): () => Promise<T> {
  let last: Promise<T> | undefined
  let doneAt = -Infinity
  let isRunning = false
  return () => {
    if (last !== undefined && (isRunning || performance.now() - doneAt < freshMs)) return last
    isRunning = true
    last = run().finally(() => {
      isRunning = false
      doneAt = performance.now()
    })
    return last
  }
}
