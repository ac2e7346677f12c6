/** The demo: the example back-end, and the gateway with its embedded store in front of it. */
import '../src/node-version.js'

const { createBackend } = await import('./backend/server.ts')
const { serve } = await import('../src/cli/start.ts')

const port = Number(process.env['BACKEND_PORT'] ?? 9001)
const backend = createBackend({ port })
// Users with this role may sign in to the operators' page.
process.env['OPS_ROLE'] ??= 'admin'
const hourMs = 3_600_000
try {
  const url = await backend.listen()
  // The config asks the back-end there.
  process.env['BACKEND_URL'] ??= url
} catch (error) {
  const reason =
    error.code === 'EADDRINUSE'
      ? `port ${port} is in use by another process. Stop that, or set BACKEND_PORT to another port`
      : error.message
  process.stderr.write(`The demo's back-end cannot listen: ${reason}.\n`)
  process.exit(1)
}
const gateway = await serve('config')
if (gateway === undefined) {
  await backend.close()
  process.exitCode = 1
} else {
  process.stdout.write(`
  The console:  ${gateway.url}
  Sign in as    admin  or  user   with the password  ant.design
  Operators:    ${gateway.opsLink(hourMs)}
                (once, within an hour; \`npm run -s console-gateway ops\` prints another link)
  (carol and dora, same password, are known to the back-end only: it vouches for them itself.)
  Stop with Ctrl+C.

`)
}
