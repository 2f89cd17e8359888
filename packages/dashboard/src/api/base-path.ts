/** What all paths of the service begin with, as in `/lethe`; empty where it has a host of its own. */
export const basePath =
  globalThis.document?.querySelector<HTMLMetaElement>('meta[name=base-path]')?.content ?? ''
