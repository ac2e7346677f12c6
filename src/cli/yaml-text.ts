/** Changes of YAML files: comments stay, and values stay as they are written. */
import { type Document, isAlias, isMap, parseDocument, stringify, type YAMLMap } from 'yaml'
import { CommandError } from './command.ts'

/** Every value is a text, so that numbers keep their digits, and texts their quotes. */
const asTexts = { schema: 'failsafe', prettyErrors: false } as const

/** @throws CommandError */
export function parseTexts(text: string): Document {
  const document = parseDocument(text, asTexts)
  const [error] = document.errors
  if (error !== undefined) throw new CommandError(`Not valid YAML: ${error.message}`)
  return document
}

const nodeOf = (value: unknown) => parseDocument(stringify(value), asTexts).contents

/**
 * Sets a member of the mapping at a path, which is made if nothing is there.
 * @throws CommandError where the mapping is that of another place
 */
export function setMember(
  document: Document,
  path: readonly string[],
  name: string,
  value: unknown
): void {
  const found = document.getIn(path)
  if (isAlias(found)) throw new CommandError(`${path.join('.')} is an alias: change it by hand.`)
  if (!isMap(found)) document.setIn(path, nodeOf({}))
  const map = document.getIn(path) as YAMLMap
  if (map.items.length === 0) map.flow = false
  map.set(nodeOf(name), nodeOf(value))
}

/**
 * @param before what the document was read from: its line ends are kept
 * @throws CommandError where an alias has lost its anchor
 */
export function textOf(document: Document, before: string): string {
  try {
    const text = document.toString({ lineWidth: 0 })
    return before.includes('\r\n') ? text.replaceAll('\n', '\r\n') : text
  } catch (error) {
    throw new CommandError(`${(error as Error).message}: change the file by hand.`)
  }
}
