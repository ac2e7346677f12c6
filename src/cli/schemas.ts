/** `schemas`: writes JSON Schemas into a config folder, and a line into each file for editors. */
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, isAbsolute, join, relative } from 'node:path'
import { readUsersFiles } from '../config/read/files.ts'
import { ConfigError } from '../config/schema/faults.ts'
import { CommandError, type Invocation, type Io } from './command.ts'
import { readText, replaceFile } from './replace-file.ts'
import { schemaTexts } from '../config/schema/for-editors.ts'

const configFiles: ReadonlyArray<readonly [file: string, schema: string]> = [
  ['gateway.yaml', 'gateway'],
  ['routes.yaml', 'routes'],
  ['limits.yaml', 'limits']
]

export async function schemas({ config: folder, io }: Invocation): Promise<number> {
  if (!existsSync(folder)) throw new CommandError(`There is no folder ${folder}.`)
  try {
    for (const file of [...writeSchemas(folder), ...addLines(folder, io.env)]) {
      io.stdout.write(`wrote ${file}\n`)
    }
  } catch (error) {
    throw new CommandError((error as Error).message)
  }
  return 0
}

const schemaFile = (folder: string, name: string) => join(folder, 'schema', `${name}.schema.json`)

function writeSchemas(folder: string): string[] {
  mkdirSync(join(folder, 'schema'), { recursive: true })
  return schemaTexts().flatMap(([name, text]) => writeIfOther(schemaFile(folder, name), text))
}

function addLines(folder: string, env: Io['env']): string[] {
  const users = usersFiles(folder, env).map(file => [file, 'users'] as const)
  return [...configFiles, ...users].flatMap(([name, schema]) => {
    const file = isAbsolute(name) ? name : join(folder, name)
    if (!existsSync(file)) return []
    const text = readText(file)
    if (/^\ufeff?#.*\$schema=/m.test(text)) return []
    const mark = text.startsWith('\ufeff') ? '\ufeff' : ''
    const end = text.includes('\r\n') ? '\r\n' : '\n'
    const path = relative(dirname(file), schemaFile(folder, schema)).replaceAll('\\', '/')
    const line = `# yaml-language-server: $schema=${path}${end}`
    return writeIfOther(file, mark + line + text.slice(mark.length))
  })
}

/** The users files of `gateway.yaml`; only the default if it does not say them. */
function usersFiles(folder: string, env: Io['env']): string[] {
  try {
    return [...new Set(['users.yaml', ...readUsersFiles(folder, env)])]
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return ['users.yaml']
  }
}

function writeIfOther(file: string, text: string): string[] {
  if (existsSync(file) && readFileSync(file, 'utf8') === text) return []
  replaceFile(file, text)
  return [file]
}
