/** Characters that a terminal obeys instead of showing; clients put them into names and paths. */

/** C1 controls, line separators, and marks that change the direction of text (UAX #9 §2). */
const obeyed = /[\u0080-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g
const controls = /[\u0000-\u001f\u007f]/g

const codeOf = (character: string) => `u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/** JSON text that means the same, with each such character as its JSON escape. */
export function escapeInJson(json: string): string {
  return json.replaceAll(obeyed, character => `\\${codeOf(character)}`)
}

/** JSON text whose texts show such a character as `\\u202e` once they are parsed. */
export function showInJson(json: string): string {
  return json.replaceAll(obeyed, character => `\\\\${codeOf(character)}`)
}

/** Text for a terminal: `\u202e` is shown where the character stood. C0 controls too. */
export function printable(text: string): string {
  const shown = (character: string) => `\\${codeOf(character)}`
  return text.replaceAll(obeyed, shown).replaceAll(controls, shown)
}

export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n')
}
