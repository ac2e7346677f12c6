/** A certificate that is its own authority, made by openssl. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { rmSync } from 'node:fs'
import { temporaryFolder } from './temporary.ts'

export type Authority = ReturnType<typeof testAuthority>

/** @param names that the certificate holds for, as openssl writes them */
export function testAuthority(
  cleanUp: (undo: () => unknown) => void,
  names = 'DNS:localhost,IP:127.0.0.1'
) {
  const folder = temporaryFolder()
  cleanUp(() => rmSync(folder, { recursive: true, force: true }))
  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')]
  const words = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2'.split(
    ' '
  )
  const subject = ['-subj', '/CN=localhost', '-addext', `subjectAltName=${names}`]
  const files = ['-keyout', key, '-out', certificate]
  execFileSync('openssl', [...words, ...subject, ...files], { stdio: 'ignore' })
  /** PEM files. */
  return { key, certificate }
}
