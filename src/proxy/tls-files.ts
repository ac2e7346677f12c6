/** The certificates and the key of connections to an https upstream. */
import type { UpstreamConfig } from '../config/schema/routes.ts'

/** PEM texts, and the name that the certificate has to have. */
export interface TlsFiles {
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
  readonly servername?: string
}

/** @param pemFiles what the files hold that upstreams name, by those names */
export function tlsFilesOf(
  { ca, tls }: Pick<UpstreamConfig, 'ca' | 'tls'>,
  pemFiles: Readonly<Record<string, string>>
): TlsFiles {
  const read = (file: string | undefined) => (file === undefined ? undefined : pemFiles[file])
  const authority = read(tls?.ca ?? ca)
  const certificate = read(tls?.certificate)
  return {
    ...(authority !== undefined && { ca: authority }),
    ...(certificate !== undefined && { cert: certificate }),
    ...(tls?.key !== undefined && { key: tls.key }),
    ...(tls?.serverName !== undefined && { servername: tls.serverName })
  }
}
