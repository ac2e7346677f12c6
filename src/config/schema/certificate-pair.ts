/** The certificate and key of a listener. */
import { secret, text } from './primitives.ts'

export const certificatePair = (examples: {
  readonly certificate: string
  readonly key: string
}) => ({
  certificate: text({
    description: 'A PEM file with the certificate, and after it those of its issuers.',
    examples: [examples.certificate]
  }),
  key: secret({
    description: 'Its private key, as PEM text without a password.',
    examples: [examples.key]
  })
})
