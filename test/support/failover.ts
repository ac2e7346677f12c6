/** A primary is lost; a replica that has all of it. */
import type { TestRedis } from './redis.ts'
import { until } from './until.ts'

type Loss = 'killed' | 'frozen'

export async function lose(server: TestRedis, how: Loss): Promise<void> {
  if (how === 'killed') await server.kill()
  else server.signal('SIGSTOP')
}

/** Resolves once the replica has all that the primary had when asked. */
export async function inStep(primary: TestRedis, replica: TestRedis): Promise<void> {
  const offset = async ({ cli }: TestRedis, field: string) =>
    Number(new RegExp(`${field}:(\\d+)`).exec(await cli('INFO', 'replication'))?.[1])
  const wanted = await offset(primary, 'master_repl_offset')
  await until(
    'the replica has it all',
    async () => (await offset(replica, 'slave_repl_offset')) >= wanted
  )
}
