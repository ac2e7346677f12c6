/** The commands, by name. */
import { audit } from './audit/audit.ts'
import { bans, lockouts } from './lockouts.ts'
import { check } from './check.ts'
import type { Command } from './command.ts'
import { createCompletion } from './completion.ts'
import { contract } from './contract.ts'
import { maintenance } from './maintenance.ts'
import { openapi, types } from './describe.ts'
import { explain } from './explain.ts'
import { generateSecret } from './generate-secret.ts'
import { hashPasswordCommand } from './hash-password.ts'
import { init } from './init/init.ts'
import { limits } from './limits/limits.ts'
import { schemas } from './schemas.ts'
import { sessions } from './sessions.ts'
import { plan } from './plan.ts'
import { presets } from './presets.ts'
import { reload, rollback } from './reload.ts'
import { restart } from './restart.ts'
import { shape } from './shape.ts'
import { start } from './start.ts'
import { status } from './status.ts'
import { users } from './users.ts'
import { why } from './why.ts'

const others = {
  init,
  start,
  check,
  explain,
  plan,
  shape,
  contract,
  types,
  openapi,
  status,
  why,
  reload,
  rollback,
  restart,
  sessions,
  maintenance,
  audit,
  limits,
  lockouts,
  bans,
  users,
  'hash-password': hashPasswordCommand,
  'generate-secret': generateSecret,
  presets,
  schemas
} as const satisfies Record<string, Command>

export const commands = { ...others, completion: createCompletion(others) }
