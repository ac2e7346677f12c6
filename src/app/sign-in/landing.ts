/** Where a browser goes after its sign-in: a page of the console, and nowhere else. */

/** Of the address as it is kept: coded, a character may have nine of these. */
const maxLength = 400
/** Browsers read `\` as `/`, and skip some control characters. */
const misread = /[\\\u0000-\u001f\u007f-\u009f]/

/**
 * @param mount of all public paths
 * @param isEndpoint whether a path is no page: a sign-out is an address, too
 * @returns gives the path, with its query and fragment, if it is a page; else the first page
 */
export function createLanding(mount: string, isEndpoint: (path: string) => boolean) {
  const first = `${mount}/`
  return (written: unknown): string => {
    if (typeof written !== 'string') return first
    if (misread.test(written) || !URL.canParse(written, 'http://console')) return first
    const { origin, pathname, search, hash } = new URL(written, 'http://console')
    const path = decodedOnce(pathname)
    const address = pathname + search + hash
    const isPage =
      origin === 'http://console' &&
      path !== undefined &&
      address.length <= maxLength &&
      written.startsWith(first) &&
      [pathname, path].every(each => each.startsWith(first) && !each.includes('//')) &&
      !misread.test(path) &&
      !/^\/api(?:\/|$)/.test(path.slice(mount.length)) &&
      !isEndpoint(path)
    return isPage ? address : first
  }
}

function decodedOnce(path: string): string | undefined {
  try {
    return decodeURIComponent(path)
  } catch {
    return undefined
  }
}
