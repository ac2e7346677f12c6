/** A primary is lost; a replica that has all of it. */
import { redisCli } from './redis-cli.ts'
import type { TestRedis } from './redis.ts'
import { until } from './until.ts'

type Loss = 'killed' | 'frozen'

export async function lose(server: TestRedis, how: Loss): Promise<void> {
  if (how === 'killed') await server.kill()
  else server.signal('SIGSTOP')
}

/** Resolves once the replica has all that the primary had when asked. */
export async function inStep(primary: number, replica: number): Promise<void> {
  const offset = async (port: number, field: string) =>
    Number(
      new RegExp(`${field}:(\\d+)`).exec(await redisCli(port, 'INFO', 'replication'))?.[1] ?? 0
    )
  const wanted = await offset(primary, 'master_repl_offset')
  await until(
    'the replica has it all',
    async () => (await offset(replica, 'slave_repl_offset')) >= wanted
  )
}
