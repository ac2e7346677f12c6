// Starts the demo as people do, signs in once, and stops it.
import { spawn } from 'node:child_process'
import { setTimeout as wait } from 'node:timers/promises'

const url = 'http://127.0.0.1:8080/api/auth/admin/login'
const body = JSON.stringify({ username: 'admin', password: 'ant.design' })
const isWindows = process.platform === 'win32'

// npm is a script: on Windows it needs a shell, elsewhere its group is stopped as by Ctrl+C
const demo = spawn('npm run demo', { shell: true, stdio: 'inherit', detached: !isWindows })
demo.on('exit', code => process.exit(code ?? 1))

async function signIn() {
  for (let second = 0; second < 60; second++) {
    try {
      const headers = { 'content-type': 'application/json' }
      return (await fetch(url, { method: 'POST', headers, body })).status
    } catch {
      await wait(1000)
    }
  }
  return 'nobody answers'
}

const outcome = await signIn()
process.stdout.write(`sign-in: ${outcome}\n`)
demo.removeAllListeners('exit')
if (isWindows) spawn('taskkill', ['/pid', String(demo.pid), '/t', '/f'])
else process.kill(-Number(demo.pid), 'SIGINT')
demo.on('exit', () => process.exit(outcome === 200 ? 0 : 1))
