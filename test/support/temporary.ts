/** A temporary folder of the test's own, also for what it starts. It goes with the test, and with it what anyone left there. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const own = mkdtempSync(join(tmpdir(), 'console-gateway-test-'))
process.env['TMPDIR'] = own
// Sockets for commands, too.
process.env['RUNTIME_DIRECTORY'] = own
process.on('exit', () => rmSync(own, { recursive: true, force: true, maxRetries: 3 }))

export function temporaryFolder(): string {
  return mkdtempSync(join(own, 'folder-'))
}
