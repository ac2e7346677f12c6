import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { stringify } from 'yaml'
import { run, start } from '../support/command.ts'
import { configFolder } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'

const limits = (max: number) =>
  stringify({ limits: { login: { by: 'address', max, window: '1m', routes: ['login'] } } })

t.test(
  'operators reload and look on the command line; SIGHUP reloads too, and the process lives on',
  async t => {
    const ops = `127.0.0.1:${await freePort()}`
    const folder = await configFolder({ gateway: { ops: { listen: ops } } })
    const put = (text: string) => writeFileSync(join(folder, 'limits.yaml'), text)
    put(limits(5))
    const gateway = start(t.after, folder)
    await gateway.says('listening on')
    const command = (...words: string[]) => run([...words, '--config', folder])

    t.match(await command('reload'), { code: 0, out: 'unchanged; generation 1 runs\n' })
    put(limits(10))
    t.match(await command('reload'), {
      code: 0,
      out: 'limits.login.max 5 → 10\nreloaded; generation 2 runs\n'
    })
    const again = await command('reload')
    t.match(again, {
      code: 0,
      out: /^unchanged; generation 2 runs\napplied already at \S+ \(operator\): limits\.login\.max 5 → 10\n$/
    })
    put('limits: no')
    const refused = await command('reload')
    t.match(refused, { code: 1, out: '' })
    t.match(
      refused.err,
      /limits\.yaml:1 limits: expected a mapping, found "no"\nrefused; generation 2 keeps running\n$/
    )

    t.match(await command('status'), { code: 3 }, 'the files are refused')
    const told = (await command('status')).out
    t.match(told, /^files +refused at /m)
    t.match(told, /^generation +2, /m)
    t.match(told, /limits\.yaml:1 limits: expected a mapping/)
    t.match(
      told,
      /^hash +[0-9a-f]{16}\ntaken +\S+ \(operator\)\nchanged +limits\.login\.max 5 → 10$/m
    )
    t.match(JSON.parse((await command('status', '--json')).out), {
      generation: 2,
      files: { state: 'refused' },
      taken: { by: 'operator', changes: ['limits.login.max 5 → 10'] }
    })

    t.match(await command('status', '--all'), {
      code: 3,
      out: / refused +\d\S* *\n1 replica\n\S+: \S*limits\.yaml:1 limits: expected a mapping/
    })

    put(limits(20))
    gateway.signal('SIGHUP')
    await gateway.says('config reloaded: limits.login.max 10 → 20')
    gateway.signal('SIGHUP')
    await gateway.says('the config files are unchanged: nothing to reload')
    // The other of the two listeners.
    writeFileSync(
      join(folder, 'gateway.yaml'),
      stringify({
        ops: { listen: ops },
        session: { cookie: { secure: false } },
        reload: { watch: false }
      })
    )
    t.match((await command('reload')).out, /restart needed: .*server\.listen/)
    gateway.signal('SIGTERM')
    t.same(await gateway.ended, { code: 0, signal: null })
  }
)
