/** `schemas`: gives a config folder its JSON Schemas, and each file the line by which editors find them. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { parse } from 'yaml'
import { isObject } from '../config/schema/visit.ts'
import { CommandError, type Command, UsageError } from './command.ts'
import { schemaTexts } from './reference.ts'

const configFiles: ReadonlyArray<readonly [file: string, schema: string]> = [
  ['gateway.yaml', 'gateway'],
  ['routes.yaml', 'routes'],
  ['limits.yaml', 'limits']
]

export const schemas: Command = {
  summary: 'write the JSON Schemas into a config folder, for completion and faults in editors',
  usage: ['[--config DIR]'],
  details: `
Writes DIR/schema/*.schema.json, and as first line of each config file that has none
"# yaml-language-server: $schema=…", which editors with a YAML language server follow.
Run it again after an update of the gateway. Nothing else in the files is changed.

Examples:
  console-gateway schemas -c /etc/console-gateway
Exit codes: 1 where the folder cannot be written.`,
  run: async ({ config: folder, rest }) => {
    if (rest.length > 0) throw new UsageError()
    if (!existsSync(folder)) throw new CommandError(`There is no folder ${folder}.`)
    try {
      for (const file of [...writeSchemas(folder), ...addLines(folder)]) {
        process.stdout.write(`wrote ${file}\n`)
      }
    } catch (error) {
      throw new CommandError((error as Error).message)
    }
    return 0
  }
}

const schemaFile = (folder: string, name: string) => join(folder, 'schema', `${name}.schema.json`)

function writeSchemas(folder: string): string[] {
  mkdirSync(join(folder, 'schema'), { recursive: true })
  return schemaTexts().flatMap(([name, text]) => writeIfOther(schemaFile(folder, name), text))
}

function addLines(folder: string): string[] {
  const users = usersFiles(folder).map(file => [file, 'users'] as const)
  return [...configFiles, ...users].flatMap(([name, schema]) => {
    const file = join(folder, name)
    if (!existsSync(file)) return []
    const text = readFileSync(file, 'utf8')
    if (/^\ufeff?#.*\$schema=/m.test(text)) return []
    const mark = text.startsWith('\ufeff') ? '\ufeff' : ''
    const end = text.includes('\r\n') ? '\r\n' : '\n'
    const path = relative(dirname(file), schemaFile(folder, schema)).replaceAll('\\', '/')
    const line = `# yaml-language-server: $schema=${path}${end}`
    return writeIfOther(file, mark + line + text.slice(mark.length))
  })
}

/** Those that `gateway.yaml` names, as far as it can be read: it may be what is to be mended. */
function usersFiles(folder: string): string[] {
  const found = new Set(['users.yaml'])
  try {
    const gateway: unknown = parse(readFileSync(join(folder, 'gateway.yaml'), 'utf8'), {
      maxAliasCount: 50
    })
    const login = isObject(gateway) && isObject(gateway['login']) ? gateway['login'] : {}
    for (const source of Array.isArray(login['sources']) ? login['sources'] : []) {
      if (isObject(source) && typeof source['file'] === 'string') found.add(source['file'])
    }
  } catch {}
  return [...found]
}

function writeIfOther(file: string, text: string): string[] {
  if (existsSync(file) && readFileSync(file, 'utf8') === text) return []
  writeFileSync(file, text)
  return [file]
}
