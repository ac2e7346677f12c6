import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { schemaTexts } from '../config/schema/for-editors.ts'
import { CommandError, type Invocation } from './command.ts'
import { readText, replaceFile } from './replace-file.ts'

export async function schemas({ config: folder }: Invocation) {
  if (!existsSync(folder)) throw new CommandError(`There is no folder ${folder}.`)
  try {
    const lines = addSchemas(folder).map(file => `wrote ${file}\n`)
    return { painted: lines.join('') }
  } catch (error) {
    throw new CommandError((error as Error).message)
  }
}

export function addSchemas(folder: string): string[] {
  mkdirSync(join(folder, 'schema'), { recursive: true })
  const files = schemaTexts().flatMap(([name, text]) => {
    const place = `schema/${name}.schema.json`
    const file = join(folder, `${name}.yaml`)
    const own = existsSync(file) ? [[file, withLine(readText(file), place)] as const] : []
    return [[join(folder, place), text] as const, ...own]
  })
  const changed = files.filter(
    ([file, text]) => !existsSync(file) || readFileSync(file, 'utf8') !== text
  )
  for (const [file, text] of changed) replaceFile(file, text)
  return changed.map(([file]) => file)
}

function withLine(text: string, schema: string): string {
  if (/^\ufeff?#.*\$schema=/m.test(text)) return text
  const mark = text.startsWith('\ufeff') ? '\ufeff' : ''
  const end = text.includes('\r\n') ? '\r\n' : '\n'
  return `${mark}# yaml-language-server: $schema=${schema}${end}${text.slice(mark.length)}`
}
