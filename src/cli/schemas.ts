import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { readUsersFiles } from '../config/read/files.ts'
import { ConfigError } from '../config/schema/faults.ts'
import { CommandError, type Invocation, type Io } from './command.ts'
import { readText, replaceFile } from './replace-file.ts'
import { schemaTexts } from '../config/schema/for-editors.ts'

export async function schemas({ config: folder, io }: Invocation): Promise<void> {
  if (!existsSync(folder)) throw new CommandError(`There is no folder ${folder}.`)
  try {
    for (const file of addSchemas(folder, io.env)) io.stdout.write(`wrote ${file}\n`)
  } catch (error) {
    throw new CommandError((error as Error).message)
  }
}

export function addSchemas(folder: string, env: Io['env']): string[] {
  const written: string[] = []
  const write = (file: string, text: string) => {
    if (existsSync(file) && readFileSync(file, 'utf8') === text) return
    replaceFile(file, text)
    written.push(file)
  }
  mkdirSync(join(folder, 'schema'), { recursive: true })
  for (const [name, text] of schemaTexts()) write(schemaFile(folder, name), text)
  for (const [name, schema] of filesIn(folder, env)) {
    const file = resolve(folder, name)
    if (existsSync(file)) write(file, withLine(file, schemaFile(folder, schema)))
  }
  return written
}

function schemaFile(folder: string, name: string): string {
  return join(folder, 'schema', `${name}.schema.json`)
}

/** The config files, each with the name of its schema. */
function filesIn(folder: string, env: Io['env']): Array<readonly [file: string, schema: string]> {
  const names = ['gateway', 'routes', 'limits', 'users']
  const own = names.map(name => [`${name}.yaml`, name] as const)
  try {
    return [...own, ...readUsersFiles(folder, env).map(file => [file, 'users'] as const)]
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return own
  }
}

function withLine(file: string, schema: string): string {
  const text = readText(file)
  if (/^\ufeff?#.*\$schema=/m.test(text)) return text
  const mark = text.startsWith('\ufeff') ? '\ufeff' : ''
  const end = text.includes('\r\n') ? '\r\n' : '\n'
  const path = relative(dirname(file), resolve(schema)).replaceAll('\\', '/')
  return `${mark}# yaml-language-server: $schema=${path}${end}${text.slice(mark.length)}`
}
