/** The certificate and key of a listener. */
import { pemFile, secret } from './primitives.ts'

export const certificatePair = (examples: {
  readonly certificate: string
  readonly key: string
}) => ({
  certificate: pemFile('A PEM file with the certificate, and after it those of its issuers.', {
    examples: [examples.certificate]
  }),
  key: secret('Its private key, as PEM text without a password.', { examples: [examples.key] })
})
