// Trims only spaces and tabs: JavaScript's trim() would accept a look-alike name.
export function cookieName(pair: string) {
  return trimBlanks(pair.slice(0, Math.max(0, pair.indexOf('='))))
}

export function cookieText(header: string, name: string): string | undefined {
  const pair = header.split(';').find(each => cookieName(each) === name)
  return pair && trimBlanks(pair.slice(pair.indexOf('=') + 1))
}

/** The value of a cookie. The cookie plugin decodes alike. */
export function decodedCookie(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

export function keepCookies(header: string, names: readonly string[]): string {
  const kept = header.split(';').filter(pair => names.includes(cookieName(pair)))
  return kept.map(trimBlanks).join('; ')
}

const isBlank = (letter: string | undefined) => letter === ' ' || letter === '\t'

/** A loop, since the pattern /[ \t]+$/ is quadratic in a run of blanks before a letter. */
function trimBlanks(text: string): string {
  let start = 0
  let end = text.length
  while (isBlank(text[start])) start++
  while (end > start && isBlank(text[end - 1])) end--
  return text.slice(start, end)
}
