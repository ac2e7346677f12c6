/**
 * A directory of its own for a test: a real slapd on free ports, with TLS, a password policy and a
 * company.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Authority } from './authority.ts'
import { running } from './command.ts'
import { freePort } from './ports.ts'
import { temporaryFolder } from './temporary.ts'

export type Values = Readonly<Record<string, string | readonly string[]>>

export const suffix = 'dc=example,dc=com'
export const service = { dn: `cn=console,${suffix}`, password: 'a service password' }

/** An entry in LDIF; values in base64, which takes any text. */
function ldif(dn: string, values: Values): string {
  const line = (name: string, value: string) =>
    `${name}:: ${Buffer.from(value).toString('base64')}\n`
  const lines = Object.entries(values).flatMap(([name, value]) =>
    [value].flat().map(each => line(name, each))
  )
  return `${line('dn', dn)}${lines.join('')}\n`
}

/** Debian's package as provide.ts unpacks it, or else the system's. */
const unpacked = resolve(import.meta.dirname, '../../node_modules/.cache/slapd')
const root = existsSync(join(unpacked, 'usr')) ? unpacked : '/'
const libraries = join(root, 'usr/lib')
const env = {
  LD_LIBRARY_PATH: readdirSync(libraries)
    .filter(name => name.endsWith('-linux-gnu'))
    .map(name => join(libraries, name))
    .join(':')
}

/**
 * @param entries by the part of the name before the suffix, such as `uid=alice,ou=people`
 * @param options `tls`: nobody signs in without it
 */
export async function testDirectory(
  cleanUp: (undo: () => unknown) => void,
  authority: Authority,
  entries: Readonly<Record<string, Values>>,
  options: readonly string[] = []
) {
  const folder = temporaryFolder()
  const [database, config] = [join(folder, 'db'), join(folder, 'slapd.conf')]
  mkdirSync(database)
  const schemas = ['core', 'cosine', 'inetorgperson', 'nis']
  writeFileSync(
    config,
    `${schemas.map(name => `include ${root}/etc/ldap/schema/${name}.schema`).join('\n')}
modulepath ${root}/usr/lib/ldap
moduleload back_mdb
moduleload ppolicy
TLSCertificateFile ${authority.certificate}
TLSCertificateKeyFile ${authority.key}
${options.join('\n')}
database mdb
suffix ${suffix}
directory ${database}
maxsize 16777216
overlay ppolicy
ppolicy_default cn=policy,${suffix}
access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact=${service.dn} read by * none
`
  )
  const fixed: Record<string, Values> = {
    '': { objectClass: ['dcObject', 'organization'], dc: 'example', o: 'Example' },
    'cn=policy': {
      objectClass: ['device', 'pwdPolicy'],
      cn: 'policy',
      pwdAttribute: 'userPassword',
      pwdLockout: 'TRUE',
      pwdMustChange: 'TRUE',
      pwdMaxFailure: '1000',
      pwdMaxAge: '86400'
    },
    'cn=console': {
      objectClass: ['organizationalRole', 'simpleSecurityObject'],
      cn: 'console',
      userPassword: service.password
    }
  }
  const all = Object.entries({ ...fixed, ...entries })
  const texts = all.map(([name, values]) =>
    ldif(name === '' ? suffix : `${name},${suffix}`, values)
  )
  const program = (name: string) => join(root, 'usr/sbin', name)
  execFileSync(program('slapadd'), ['-f', config], { input: texts.join(''), env })
  const [port, tlsPort] = [await freePort(), await freePort()]
  const urls = `ldap://127.0.0.1:${port} ldaps://127.0.0.1:${tlsPort}`
  const server = running(cleanUp, program('slapd'), ['-f', config, '-h', urls, '-d', 'stats'], env)
  await server.says('slapd starting')
  return {
    /** Without TLS, or with StartTLS. */
    port,
    tlsPort,
    kill: server.kill,
    /** Every line so far: of each operation, without passwords. */
    get lines() {
      return server.written().split('\n').slice(0, -1)
    }
  }
}
