import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { start } from '../support/command.ts'
import { configFolder } from '../support/gateway.ts'

t.test('SIGHUP reloads, and the process lives on', async t => {
  const folder = await configFolder()
  const gateway = start(t.after, folder)
  await gateway.listens()
  const file = join(folder, 'limits.yaml')
  writeFileSync(file, readFileSync(file, 'utf8').replace('max: 100000', 'max: 20'))
  gateway.signal('SIGHUP')
  await gateway.says('config reloaded: limits.signed-in.max 100000 → 20')
  gateway.signal('SIGHUP')
  await gateway.says('the config files are unchanged: nothing to reload')
  gateway.signal('SIGTERM')
  t.same(await gateway.ended, { code: 0, signal: null })
})
