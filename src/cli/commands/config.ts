/** Declarations of the commands that read a config folder. */
import type { Command } from '../command.ts'

export const check: Command = {
  summary: 'report all faults of the config, without starting',
  ways: [{ takes: ['strict', 'live', 'no-code', 'json'] }],
  details: `
Reports all faults and warnings at once, each with file, line and what was expected.
Expectations (expect) are run as well.

Examples:
  console-gateway check -c /etc/console-gateway
  console-gateway check --strict --json
  console-gateway check --live

With --live it also connects to upstreams and Redis, and says which cannot be reached.
It loads the config's own code (module), which may do anything that you may: use --no-code
for a config that you do not trust. Expectations are not tried then.

Exit codes: 0 no faults, 1 faults or something that cannot be reached, 3 warnings with --strict.`,
  options: {
    'strict': { type: 'boolean', description: 'warnings end with exit code 3' },
    'live': { type: 'boolean', description: 'connect to upstreams and Redis too' },
    'no-code': { type: 'boolean', description: 'load no own code, try no expectation' }
  },
  run: async invocation => (await import('../check.ts')).check(invocation)
}

export const explain: Command = {
  summary: 'explain a request: what the gateway does with it, with file and line',
  ways: [
    {
      words: 'METHOD PATH',
      takes: ['as', 'role', 'from', 'header', 'data', 'answer', 'live', 'json']
    }
  ],
  details: `
The real app of this config handles the request, without a listener: no Redis is
called, and limits count from zero. PATH is taken as written, with server.mount and
query. Shown are the decisions, and each request to a back-end with its headers:
+ is new, ~ changed, = the client's, - dropped.

Without --as and --role the caller is not signed in. Users of a users file have
their roles there; for other users set --role. The headers are those of a browser
that shows the console; --header replaces one, and --data sets a body.

--answer reads the back-end's response from FILE (JSON; - is standard input), --live
asks the back-ends. Then each operation of the route's shape is shown, and the
response. With --live, --header is also sent to the route's back-end, and to others
that take a credential: so it can be tried with one.

Examples:
  console-gateway explain GET /api/orders --as alice
  console-gateway explain POST '/api/orders?draft=1' --role viewer --from 203.0.113.7
  curl -s http://orders.internal/orders | console-gateway explain GET /api/orders --role admin --answer -
  console-gateway explain GET /api/orders --role admin --live --header 'authorization: Bearer …'
Exit codes: 0 the request passes, 3 the gateway refuses it, or the response is an error.`,
  options: {
    as: { type: 'string', value: 'USER', description: 'signed in as this user' },
    role: {
      type: 'string',
      value: 'ROLE',
      multiple: true,
      description: 'signed in with this role; may be repeated'
    },
    from: {
      type: 'string',
      value: 'IP',
      description: 'the address of the client (default: 127.0.0.1)'
    },
    header: {
      type: 'string',
      short: 'H',
      value: 'FIELD',
      multiple: true,
      description: 'a header of the request, "name: value"; may be repeated'
    },
    data: { type: 'string', value: 'BODY', description: 'the body of the request' },
    answer: {
      type: 'string',
      value: 'FILE',
      description: 'the back-end’s response; - is standard input'
    },
    live: { type: 'boolean', description: 'ask the back-ends' }
  },
  run: async invocation => (await import('../explain.ts')).explain(invocation)
}

export const plan: Command = {
  summary: 'list what a new config folder would change, and the risks of it',
  ways: [
    { words: 'NEW_DIR', takes: ['config', 'json'], isLocal: true },
    { takes: ['config', 'json'] }
  ],
  details: `
Compares the config folder (--config) with NEW_DIR; without NEW_DIR, the running
gateway with the files of the config folder. Lists what a reload, and what a
restart, would change; nothing is changed. Both are checked first. Changes to
gateway.yaml need a restart; all others, and renewed certificates of server.tls
and ops.tls, take effect at a reload.

Examples:
  console-gateway plan -c /etc/console-gateway
  console-gateway plan /etc/console-gateway.next -c /etc/console-gateway
Exit codes: 0 no risks, 3 risks; 1 faults, or no gateway answers.`,
  asksGateway: true,
  run: async invocation => (await import('../plan.ts')).plan(invocation)
}

export const openapi: Command = {
  summary: 'write an OpenAPI 3.1 document of all that the console can call',
  ways: [{ takes: ['output'] }],
  options: {
    output: {
      type: 'string',
      short: 'o',
      value: 'FILE',
      description: 'the file to write (default: standard output)'
    }
  },
  details: `
Reads only the config folder: no gateway has to run.

Examples:
  console-gateway openapi -o openapi.json
  npx openapi-typescript openapi.json -o src/services/gateway.d.ts`,
  run: async invocation => (await import('../describe.ts')).openapi(invocation)
}

export const presets: Command = {
  summary: 'list and show the presets of consoles and back-ends',
  ways: [{ takes: ['json'] }, { words: 'show PRESET' }, { words: 'show', needs: ['merged'] }],
  details: `
A preset is made of keys of the config files. gateway.yaml names a console's preset in
"extends" and a back-end's in "backend"; the files of the folder override them key by key.
Where a console and a back-end have the same name, console/NAME and backend/NAME tell them
apart. With --merged: what the config folder and its presets say together, without
defaults, each key with its file and line. Secrets are shown as references.

Examples:
  console-gateway presets
  console-gateway presets show ant-design-pro
  console-gateway presets show --merged -c /etc/console-gateway
Exit codes: 1 if a file of the config folder cannot be read.`,
  options: {
    merged: { type: 'boolean', description: 'show the config folder merged with its presets' }
  },
  run: async invocation => (await import('../presets.ts')).presets(invocation)
}

export const schemas: Command = {
  summary: 'write JSON Schemas into a config folder, for completion and checks in editors',
  ways: [{ takes: ['config'] }],
  details: `
Writes DIR/schema/*.schema.json, and into each config file without one the first line
"# yaml-language-server: $schema=…" for editors with a YAML language server. Run it
again after an update of the gateway. Nothing else in the files is changed.

Examples:
  console-gateway schemas -c /etc/console-gateway
Exit codes: 1 if the folder cannot be written.`,
  run: async invocation => (await import('../schemas.ts')).schemas(invocation)
}
