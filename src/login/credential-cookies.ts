/** The `Cookie` header after a response. Of other names, and what is deleted, nothing is taken. */
export function cookiesAfter(
  before: string,
  setCookie: string | string[] | undefined,
  names: readonly string[]
): string {
  const isNamed = (pair: string) => names.includes(nameOf(pair))
  const former = before === '' ? [] : before.split('; ').filter(isNamed)
  const set = [setCookie ?? []].flat().filter(each => !deletes(each))
  const pairs = set.map(each => each.split(';', 1)[0] ?? '').filter(isNamed)
  const byName = new Map(pairs.map(pair => [nameOf(pair), pair]))
  return [...former.filter(pair => !byName.has(nameOf(pair))), ...byName.values()].join('; ')
}

function deletes(setCookie: string): boolean {
  return setCookie.split(';').some(attribute => {
    const [name = '', value = ''] = attribute.split('=', 2).map(part => part.trim())
    return name.toLowerCase() === 'max-age' && value !== '' && Number(value) <= 0
  })
}

function nameOf(pair: string): string {
  return pair.slice(0, Math.max(0, pair.indexOf('=')))
}
