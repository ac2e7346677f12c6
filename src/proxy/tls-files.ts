/** The certificates and the key of connections to an https upstream. */
import type { UpstreamConfig } from '../config/schema/routes.ts'

/** PEM texts, and the name that the certificate has to have. */
export interface TlsFiles {
  readonly ca?: string | undefined
  readonly cert?: string | undefined
  readonly key?: string | undefined
  readonly servername?: string | undefined
}

/** @param pemFiles what the files hold that upstreams name, by those names */
export function tlsFilesOf(
  { ca, tls }: Pick<UpstreamConfig, 'ca' | 'tls'>,
  pemFiles: Readonly<Record<string, string>>
): TlsFiles {
  return {
    ca: pemFiles[tls?.ca ?? ca ?? ''],
    cert: pemFiles[tls?.certificate ?? ''],
    key: tls?.key,
    servername: tls?.serverName
  }
}
