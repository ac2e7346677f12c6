/** The commands, by name, in the order of the help. */
import type { Command } from './command.ts'
import * as ofConfig from './commands/config.ts'
import * as operating from './commands/operating.ts'
import * as running from './commands/running.ts'
import * as setup from './commands/setup.ts'
import { createCompletion } from './completion.ts'

const others = {
  'init': setup.init,
  'routes': setup.routes,
  'start': running.start,
  'check': ofConfig.check,
  'explain': ofConfig.explain,
  'plan': ofConfig.plan,
  'openapi': ofConfig.openapi,
  'status': running.status,
  'ops': running.ops,
  'why': running.why,
  'reload': running.reload,
  'sessions': operating.sessions,
  'maintenance': operating.maintenance,
  'audit': operating.audit,
  'limits': operating.limits,
  'lockouts': operating.lockouts,
  'users': setup.users,
  'hash-password': setup.hashPassword,
  'generate-secret': setup.generateSecret,
  'presets': ofConfig.presets,
  'schemas': ofConfig.schemas
} as const satisfies Record<string, Command>

export const commands = { ...others, completion: createCompletion(others) }
