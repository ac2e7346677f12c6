/** The types that the package does not bring. */
declare module 'cluster-key-slot' {
  export default function calculateSlot(key: string): number
}
