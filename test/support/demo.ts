/** The demo as it is shipped, config/ and the example back-end, on free ports. */
import { createBackend } from '../../examples/backend/server.ts'
import { loadConfig } from '../../src/config/read/load.ts'
import type { Config } from '../../src/config/schema/config.ts'
import { startGateway } from '../../src/process/gateway.ts'
import { createLogger } from '../../src/services/services.ts'

/** @param session what shall be other than in config/ */
export async function testDemo(
  cleanUp: (undo: () => unknown) => void,
  session: Partial<Config['gateway']['session']> = {}
) {
  const backend = createBackend({ port: 0 })
  const url = await backend.listen()
  cleanUp(() => backend.close())
  const config = loadConfig('config', {
    BACKEND_URL: url,
    LISTEN: '127.0.0.1:0',
    OPS_LISTEN: '127.0.0.1:0'
  })
  const { gateway: shipped } = config
  const changed = {
    ...config,
    gateway: { ...shipped, session: { ...shipped.session, ...session } }
  }
  const log = createLogger({ level: 'silent', format: 'json' }, { write: () => {} })
  const gateway = await startGateway(changed, log)
  cleanUp(() => gateway.stop({ noticeMs: 0 }))
  return { ...gateway, backend }
}
