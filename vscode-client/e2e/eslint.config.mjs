import client from "../eslint.config.mjs";

export default [...client, { rules: { "@typescript-eslint/no-non-null-assertion": "off" } }];
