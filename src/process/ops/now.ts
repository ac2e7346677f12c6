/** What `/ops/api/now` tells: this process in full, other replicas by their heartbeat. */
import type { Now } from '../../admin/now-schema.ts'
import type { Operated } from '../operated.ts'

/** Less than the second between two events of a stream; all who watch share it. */
const freshMs = 800

export function nowReader({
  publicServer,
  state,
  fleet
}: Pick<Operated, 'publicServer' | 'state' | 'fleet'>): () => Promise<Now> {
  let readAt = -Infinity
  let last: Promise<Now>

  async function read(): Promise<Now> {
    const { replicas } = await fleet.list()
    const { generation, hash, files } = state().config
    return {
      at: new Date().toISOString(),
      replica: fleet.id,
      ...publicServer.present.read(),
      replicas: [...replicas],
      config: { generation, hash, state: files.state }
    }
  }

  return () => {
    if (performance.now() - readAt >= freshMs) {
      readAt = performance.now()
      last = read()
    }
    return last
  }
}
