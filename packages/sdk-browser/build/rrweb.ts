import { join } from 'node:path'
import type { Plugin } from 'rolldown'
import { mutationPatches } from './rrweb-mutations.ts'
import { shadowPatches } from './rrweb-shadows.ts'

export interface Patch {
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
    why: `What is the browser's own is told from the text of its functions, and taken from the frame
      that src/natives.ts may have made: one a page, in place of one a prototype. querySelector is
      a method, and looking for it among the accessors made a frame in every page.`,
    from: 'const testableMethods = {',
    to: 'const untaintedAccessorCache = {};',
    by: `function getUntaintedPrototype(key) {
    const own = globalThis[key].prototype;
    const accessors = testableAccessors[key] ?? [];
    // In WebKit one of a frame that is gone is never called.
    const isOwn = key === "MutationObserver"
      ? isNative(globalThis, key) || navigator.vendor.startsWith("Apple")
      : accessors.every((each) => isNative(own, each));
    return isOwn ? own : realm[key].prototype;
  }
  const untaintedBaseIframeCleanup = {};
  const untaintedAccessorCache = {};`,
  },
  {
    why: 'The same.',
    from: 'Element: ["shadowRoot", "querySelector", "querySelectorAll"]',
    by: 'Element: ["shadowRoot"]',
  },
  {
    why: 'Times come from a clock that only goes on.',
    from: 'let nowTimestamp = Date.now;',
    to: 'const index = {',
    by: 'const patch = undefined;\nconst index = {',
  },
  {
    why: `A frame to mend Array.from; ours is the browser's own (src/natives.ts).`,
    from: 'try {\n  if (Array.from([1], (x) => x * 2)[0] !== 2) {',
    to: 'const mirror = createMirror();',
    by: 'const mirror = createMirror();',
  },
  {
    why: `Listeners go past what the page has put around its own: zone.js runs a change detection
      after each.`,
    from: 'target.addEventListener(type, fn, options);\n  return () => target.removeEventListener(type, fn, options);',
    by: 'return listen(target, type, fn, options);',
  },
  {
    why: `A timer for each value that is set: 20,000 of them on a large form (rrweb issue 731
      and pull request 1313 are about the same function). Errors of the page inside the guard, and put back is what was there
      before, also over what the page put there since (src/recording/spies.ts).`,
    from: '  const currentWindow = doc.defaultView;\n  if (!currentWindow) {\n    return () => {\n      handlers.forEach((h) => h());',
    to: '  return callbackWrapper(() => {\n    handlers.forEach((h) => h());\n  });\n}\nfunction getNestedCSSRulePositions',
    by: `  handlers.push(spyOnInputs(
    doc.defaultView,
    (target) => callbackWrapper(eventHandler)({ target, isTrusted: false }),
    inOwnTask
  ));
  return callbackWrapper(() => {
    handlers.forEach((h) => h());
  });
}
function getNestedCSSRulePositions`,
  },
  {
    why: `The same, for rules of style sheets: what insertRule throws is the page's to catch, and
      feature detection rests on it (rrweb pull request 1818).`,
    from: 'function initStyleSheetObserver({ styleSheetRuleCb, mirror: mirror2, stylesheetManager }, { win }) {',
    to: 'function initAdoptedStyleSheetObserver({',
    by: `const initStyleSheetObserver = (o, { win }) => spyOnSheets(o, win, callbackWrapper);
function initAdoptedStyleSheetObserver({`,
  },
  {
    why: 'The same, for declarations.',
    from: 'function initStyleDeclarationObserver({',
    to: 'function initMediaInteractionObserver({',
    by: `const initStyleDeclarationObserver = (o, { win }) => spyOnDeclarations(o, win, callbackWrapper);
function initMediaInteractionObserver({`,
  },
  {
    why: 'The same, for elements that are defined.',
    from: '  const restoreHandler = patch(\n    win.customElements,',
    to: '  return restoreHandler;\n}\nfunction mergeHooks',
    by: `  return spy(win.customElements, "define", callbackWrapper((_, [name]) => customElementCb({ define: { name } })));
}
function mergeHooks`,
  },
  {
    why: 'The snapshot is ours (src/recording/snapshot.ts): three times as fast, and in slices.',
    from: 'takeFullSnapshot = (isCheckout = false) => {',
    to: '\n  };\n  try {\n    const handlers = [];',
    by: `takeFullSnapshot = () => options.takeSnapshot({
      mirror, mutationBuffers, genId, serializeNodeWithId, childNodes, parentNode, shadowRoot,
      stylesheetManager, shadowDomManager, stringifyStylesheet,
      serializeOptions: {
        doc: document, mirror, blockClass, blockSelector, maskTextClass, maskTextSelector,
        needsMask: false, inlineStylesheet, maskInputOptions, maskTextFn, maskInputFn,
        slimDOMOptions, dataURLOptions, recordCanvas, inlineImages, keepIframeSrcFn,
        onSerialize: (n) => {
          if (isSerializedIframe(n, mirror)) iframeManager.addIframe(n);
          if (isSerializedStylesheet(n, mirror)) stylesheetManager.trackLinkElement(n);
          if (hasShadowRoot(n)) shadowDomManager.addShadowRoot(index.shadowRoot(n));
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
    why: `Frames of other origins are not recorded: a page of somebody else would have to run rrweb and
      post what it sees. This saves 2 KB.`,
    from: 'class CrossOriginIframeMirror {',
    to: 'class ShadowDomManager {',
    by: `class IframeManager {
    constructor(options) {
      Object.assign(this, options);
    }
    addIframe() {}
    addLoadListener(listener) {
      this.loadListener = listener;
    }
    attachIframe(frame, node) {
      const { mirror } = this;
      const adds = [{ parentId: mirror.getId(frame), nextId: null, node }];
      this.mutationCb({ adds, removes: [], texts: [], attributes: [], isAttachIframe: true });
      this.loadListener?.(frame);
    }
  }
  class ShadowDomManager {`,
  },
  {
    why: 'Pixels of canvases and images, which neither option here asks for.',
    from: 'if (tagName === "canvas" && recordCanvas) {',
    to: 'if (["audio", "video"].includes(tagName)) {',
    by: 'if (["audio", "video"].includes(tagName)) {',
  },
  {
    why: `rrweb takes the border box, and as it looks after transforms; the replay uses it as the size
      of the content, and what the element's id and style say of its place is gone. So what follows
      a blocked element stood elsewhere.`,
    from: 'const { width, height } = n.getBoundingClientRect();',
    to: '};\n  }',
    by: 'attributes = boxOf(n);\n  }',
  },
  {
    why: 'The CSSOM loses a part of some rules (src/recording/css-source.ts).',
    from: '(rule) => stringifyRule(rule, sheetHref)',
    by: `(rule) => {
        const printed = stringifyRule(rule, sheetHref);
        const text = ruleText(s, rule, printed);
        return text === printed ? text : absolutifyURLs(text, sheetHref);
      }`,
  },
  {
    why: 'A sheet of another origin can be fetched where its server lets it.',
    from: 'return fixBrowserCompatibilityIssuesInCSS(stringifiedRules);',
    to: 'return null;',
    by: `return fixBrowserCompatibilityIssuesInCSS(stringifiedRules);
  } catch (error) {
    const text = s.href && foreignText(s);
    return text ? absolutifyURLs(text, s.href) : null;`,
  },
  {
    why: 'Popovers are shown by a call, which changes no attribute.',
    from: 'if (tagName === "dialog" && n.open) {',
    by: `if (n.popover && n.matches(":popover-open")) attributes["data-lethe-popover"] = "";
  // A sheet that is turned off, which is no attribute either (src/recording/extras.ts).
  if (n.sheet?.disabled) attributes.media = "not all";
  if (tagName === "dialog" && n.open) {`,
  },
  {
    why: 'Checkouts, packing, plugins and frames that send to their parent: none is used here.',
    from: 'let lastFullSnapshotEvent;',
    to: 'const wrappedMutationEmit',
    by: `wrappedEmit = (e) => {
    e.timestamp = nowTimestamp();
    emit(e);
  };
  const wrappedMutationEmit`,
  },
  {
    why: 'The same.',
    from: 'for (const plugin of plugins || []) {\n    if (plugin.getMirror)',
    to: 'const processedNodeManager',
    by: 'const processedNodeManager',
  },
  {
    why: 'The same.',
    from: 'plugins: ((_a2 = plugins == null',
    to: '}))) || []',
    by: 'plugins: []',
  },
  {
    why: 'The same: it always emits to its caller.',
    from: 'const inEmittingFrame = ',
    to: 'mirror.reset();\n  const maskInputOptions',
    by: 'mirror.reset();\n  const maskInputOptions',
  },
  {
    why: 'The recorder is started when the document is there.',
    from: 'if (["interactive", "complete"].includes(document.readyState)) {',
    to: 'return () => {\n      handlers.forEach',
    by: 'init();\n    return () => {\n      handlers.forEach',
  },
  {
    why: 'Functions that are not used here.',
    from: 'record.addCustomEvent = ',
    to: 'record.takeFullSnapshot',
    by: 'record.takeFullSnapshot',
  },
  {
    why: `Text is masked by ours alone; rrweb would look for the class of each node's ancestors.`,
    from: 'function needMaskingText(node, maskTextClass, maskTextSelector, checkAncestors) {',
    to: '\n}\n',
    by: 'const needMaskingText = () => false;\n',
  },
  {
    why: `100,000 nodes that are appended and removed in one task took 25 s to follow. None of a flood
      is followed, and the page is looked at again (src/recording/flood.ts).`,
    from: '__publicField(this, "processMutations", (mutations) => {',
    by: `__publicField(this, "processMutations", (mutations) => {
      if (mutations.length > FLOOD_RECORDS) return flood();`,
  },
  {
    why: 'Of the head nothing is kept that no visitor sees: all of it is asked for below.',
    from: 'function slimDOMDefaults(',
    to: '\n}\n',
    by: 'const slimDOMDefaults = () => 0;\n',
  },
  {
    why: 'What is left of the canvas.',
    from: '  const wrappedCanvasMutationEmit = ',
    to: '  const wrappedAdoptedStyleSheetEmit',
    by: '  const wrappedAdoptedStyleSheetEmit',
  },
  {
    why: 'The same.',
    from: '          canvasMutationCb: wrappedCanvasMutationEmit,\n',
    by: '',
  },
  {
    why: 'Options that nobody gives are what they are by default.',
    from: '    emit,\n    checkoutEveryNms,',
    to: '  } = options;\n  registerErrorHandler',
    by: `    emit, blockSelector, ignoreSelector, maskInputFn, sampling, errorHandler: errorHandler2
  } = options;
  const blockClass = "rr-block", ignoreClass = "rr-ignore", inlineStylesheet = true;
  const maskAllInputs = true, _maskInputOptions = undefined, _slimDOMOptions = "all";
  const recordDOM = true, keepIframeSrcFn = () => false, hooks = undefined;
  const userTriggeredOnInput = false, collectFonts = false, recordCrossOriginIframes = false;
  const ignoreCSSAttributes = undefined;
  registerErrorHandler`,
  },
  {
    why: 'Functions that are not used here.',
    from: '  if (!recording) {\n    throw new Error("please take full snapshot',
    to: '  }\n',
    by: '',
  },
  {
    why: 'The same.',
    from: 'record.mirror = mirror;',
    by: '',
  },
  {
    why: 'The same.',
    from: '          const msg = String(error).toLowerCase();',
    to: '          }\n',
    by: '',
  },
  {
    why: 'The same.',
    from: '          fontCb: (p) => wrappedEmit({',
    to: '          }),\n',
    by: '',
  },
  {
    why: 'For browsers older than the modules and syntax of the recorder itself.',
    from: '\n  polyfill();',
    by: '',
  },
  {
    why: `Of a page's head it leaves out what nobody sees, by long lists of names; no meta element is
      seen.`,
    from: 'function slimDOMExcluded(sn, slimDOMOptions) {',
    to: '\nfunction serializeNodeWithId',
    by: `function slimDOMExcluded({ type, tagName, attributes }) {
  return type === NodeType.Comment || type === NodeType.Element && (
    /^(script|meta)$/.test(tagName) ||
    tagName === "link" && (/^(modulepreload|(shortcut |apple-touch-)?icon)$/.test(attributes.rel) || attributes.as === "script")
  );
}
function serializeNodeWithId`,
  },
  {
    why: 'A list of names in texts, which have short ones in the scripts (internal-names.ts).',
    from: '    [\n      "mutationCb",\n      "blockClass",',
    to: '      this[key] = options[key];\n    });',
    by: '    Object.assign(this, options);',
  },
  {
    why: 'The same as in the list of options: all of it, always.',
    from: 'const slimDOMOptions = slimDOMDefaults(_slimDOMOptions);',
    by: 'const slimDOMOptions = {};',
  },
  {
    why: 'What is blocked is told by one class and one selector.',
    from: '    if (typeof blockClass === "string") {\n      if (el.classList',
    to: '    }\n  } catch (e) {',
    by: `    if (el.classList.contains(blockClass)) return true;
    if (checkAncestors && el.closest("." + blockClass) !== null) return true;
  } catch (e) {`,
  },
  {
    why: 'The same.',
    from: '    if (typeof blockClass === "string") {\n      if (element.classList.contains(blockClass)) {',
    to: '    if (blockSelector) {\n      return element.matches(blockSelector);',
    by: `    if (element.classList.contains(blockClass)) return true;
    if (blockSelector) {
      return element.matches(blockSelector);`,
  },
  {
    why: 'The same.',
    from: 'function classMatchesRegex(node, regex, checkAncestors) {',
    to: '\n}\n',
    by: '',
  },
  {
    why: 'A class of the replay.',
    from: 'class BaseRRNode {',
    to: '\n}\n',
    by: '',
  },
  {
    why: 'Hooks of those who extend rrweb: nobody here does.',
    from: '\n  mergeHooks(o, hooks);',
    by: '',
  },
  {
    why: 'Fonts that scripts load are none of what is recorded.',
    from: 'fontObserver = initFontObserver(o);',
    by: '',
  },
  {
    why: 'The same.',
    from: '  const pluginHandlers = [];',
    to: '  return callbackWrapper(() => {\n    mutationBuffers',
    by: '  return callbackWrapper(() => {\n    mutationBuffers',
  },
  {
    why: 'The same.',
    from: '    pluginHandlers.forEach((h) => h());\n',
    by: '',
  },
  {
    why: 'A warning for those who used rrweb ten years ago.',
    from: 'const DEPARTED_MIRROR_ACCESS_WARNING = ',
    to: '\nfunction throttle(',
    by: '\nfunction throttle(',
  },
]

const source = (name: string) => JSON.stringify(join(import.meta.dirname, '../src', name))
const ours = `
import { isNative, realm } from ${source('natives.ts')};
import { listen } from ${source('recording/page-natives.ts')};
import { boxOf } from ${source('recording/box.ts')};
import { now as nowTimestamp } from ${source('recording/clock.ts')};
import { watchPopovers } from ${source('recording/extras.ts')};
import { foreignText, ruleText } from ${source('recording/css-source.ts')};
import { FLOOD_RECORDS, flood } from ${source('recording/flood.ts')};
import { spy, spyOnAdopted, spyOnDeclarations, spyOnInputs, spyOnSheets } from ${source('recording/spies.ts')};
import { plainNode } from ${source('recording/plain.ts')};
import { inOwnTask } from ${source('recording/tasks.ts')};
const recordCanvas = false, inlineImages = false, dataURLOptions = {};
const maskTextClass = undefined, maskTextSelector = undefined, maskTextFn = undefined;
`

/** Applies the patches to rrweb's recorder as it is bundled. */
export function patchRrweb(): Plugin {
  return {
    name: 'patch-rrweb',
    transform: {
      filter: { id: /@rrweb\/record\/dist\/record\.js$/ },
      // rrweb prints whole elements of the page to the console.
      handler: (code) =>
        ours +
        smaller([...patches, ...mutationPatches, ...shadowPatches].reduce(apply, code))
          .replace(/\bconsole\.(debug|error|log|warn)\(/g, 'void (')
          .replace(/\bDate\.now\(\)/g, 'nowTimestamp()'),
    },
  }
}

/** What TypeScript has made of enums and of fields: 1 KB that says nothing. */
function smaller(code: string) {
  const members = /(\w+)2\[\w+2\["(\w+)"\] = (\d+)\] = /g
  for (const [, name = '', member, value = ''] of code.matchAll(members)) {
    code = code.replace(new RegExp(`\\b${name}\\.${member}\\b`, 'g'), value)
  }
  // Options that nobody gives, handed from one to the other.
  const unused =
    /^ *(recordCanvas|inlineImages|dataURLOptions|maskText(Class|Selector|Fn))(: this\.\w+)?,?$/gm
  return code
    .replace(unused, '')
    .replace(/\bslimDOMOptions\.\w+/g, 'true')
    .replace(/__publicField\(this, "\w+"\);/g, '')
    .replace(/__publicField\(this, "(\w+)", /g, 'void (this.$1 = ')
}

function apply(code: string, { from, to, by }: Patch) {
  const start = code.indexOf(from)
  const end = to === undefined ? start + from.length : code.indexOf(to, start) + to.length
  const unique = start >= 0 && code.indexOf(from, start + 1) < 0
  if (!unique || end <= start) throw new Error(`rrweb has changed, look at the patch: ${from}`)
  return code.slice(0, start) + by + code.slice(end)
}
