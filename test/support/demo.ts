/** The demo as it is shipped, config/ and the example back-end, on free ports. */
import { createBackend } from '../../examples/backend/server.ts'
import { createGateway } from '../../src/index.ts'
import { writeConfig } from './gateway.ts'
import { temporaryFolder } from './temporary.ts'

/** @param session keys that shall be other than in config/ */
export async function testDemo(cleanUp: (undo: () => unknown) => void, session: object = {}) {
  const backend = createBackend({ port: 0 })
  const url = await backend.listen()
  cleanUp(() => backend.close())
  const changes = temporaryFolder()
  writeConfig(changes, 'gateway.yaml', { session })
  const gateway = await createGateway({
    config: ['config', changes],
    env: { BACKEND_URL: url, LISTEN: '127.0.0.1:0', OPS_LISTEN: '127.0.0.1:0' },
    log: () => {}
  })
  cleanUp(() => gateway.stop({ noticeMs: 0 }))
  return { ...gateway, backend }
}
