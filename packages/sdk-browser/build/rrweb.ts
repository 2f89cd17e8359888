import type { Plugin } from 'rolldown'

interface Patch {
  why: string
  from: string
  /** The end of what is replaced, where `from` is only its beginning. */
  to?: string
  by: string
}

/*
 * What the recorder changes in @rrweb/record, whose version is pinned. Each text must be found
 * exactly once, so a new version that moved it fails the build instead of the page.
 */
const patches: Patch[] = [
  {
    why: `querySelector is a method, and looking for it among the accessors made rrweb put an iframe
      into every page to fetch a clean prototype: 20 ms of layout, and a node the page did not ask
      for.`,
    from: 'Element: ["shadowRoot", "querySelector", "querySelectorAll"]',
    by: 'Element: ["shadowRoot"]',
  },
  {
    why: 'The snapshot is ours (src/recording/snapshot.ts): three times as fast, and in slices.',
    from: 'takeFullSnapshot = (isCheckout = false) => {',
    to: '\n  };\n  try {\n    const handlers = [];',
    by: `takeFullSnapshot = () => options.takeSnapshot({
      mirror, mutationBuffers, genId, serializeNodeWithId, childNodes, parentNode, shadowRoot,
      stylesheetManager, shadowDomManager,
      serializeOptions: {
        doc: document, mirror, blockClass, blockSelector, maskTextClass, maskTextSelector,
        needsMask: false, inlineStylesheet, maskInputOptions, maskTextFn, maskInputFn,
        slimDOMOptions, dataURLOptions, recordCanvas, inlineImages, keepIframeSrcFn,
        onSerialize: (n) => {
          if (isSerializedIframe(n, mirror)) iframeManager.addIframe(n);
          if (isSerializedStylesheet(n, mirror)) stylesheetManager.trackLinkElement(n);
          if (hasShadowRoot(n)) shadowDomManager.addShadowRoot(index.shadowRoot(n), document);
        },
        onIframeLoad: (iframe, childSn) => {
          iframeManager.attachIframe(iframe, childSn);
          shadowDomManager.observeAttachShadow(iframe);
        },
        onStylesheetLoad: (linkEl, childSn) => stylesheetManager.attachLinkElement(linkEl, childSn)
      }
    });
  try {
    const handlers = [];`,
  },
  {
    why: 'A canvas is never recorded: its pixels cannot be masked. This saves 3 KB.',
    from: 'canvasManager = new CanvasManager({',
    to: '});\n  const shadowDomManager',
    by: `const nothing = () => {};
  canvasManager = { reset: nothing, freeze: nothing, unfreeze: nothing, lock: nothing, unlock: nothing };
  const shadowDomManager`,
  },
  {
    why: 'What is left of the canvas and would run all the same: the source of a worker, base64.',
    from: 'const jsContent = ',
    to: '\nfunction WorkerWrapper',
    by: 'const jsContent = "", blob = null;\nfunction WorkerWrapper',
  },
  {
    why: 'The same.',
    from: 'var chars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";\nvar',
    to: 'const canvasVarMap',
    by: 'const encode = () => "";\nconst canvasVarMap',
  },
  {
    why: 'A warning for those who used rrweb ten years ago.',
    from: 'const DEPARTED_MIRROR_ACCESS_WARNING = ',
    to: '\nfunction throttle(',
    by: '\nfunction throttle(',
  },
]

/** Applies the patches to rrweb's recorder as it is bundled. */
export function patchRrweb(): Plugin {
  return {
    name: 'patch-rrweb',
    transform: {
      filter: { id: /@rrweb\/record\/dist\/record\.js$/ },
      // rrweb prints whole elements of the page to the console.
      handler: (code) =>
        patches.reduce(apply, code).replace(/\bconsole\.(debug|error|log|warn)\(/g, 'void ('),
    },
  }
}

function apply(code: string, { from, to, by }: Patch) {
  const start = code.indexOf(from)
  const end = to === undefined ? start + from.length : code.indexOf(to, start) + to.length
  const unique = start >= 0 && code.indexOf(from, start + 1) < 0
  if (!unique || end <= start) throw new Error(`rrweb has changed, look at the patch: ${from}`)
  return code.slice(0, start) + by + code.slice(end)
}
